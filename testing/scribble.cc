#include "testing/scribble.h"

#include <sstream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "device/bytes.h"
#include "device/device.h"
#include "testing/taken_memory.h"

namespace holdfast::testing {
namespace {

// What a neighbour on the host device may pretend to take: its pages come as they are written.
constexpr std::uint64_t kHostCapacity = 64 * kGiB;

absl::StatusOr<std::uint64_t> Serve(const std::string& line, Device& device, Stream& stream,
                                    TakenMemory& taken, TakenMemory& filled) {
  std::istringstream words(line);
  std::string command, argument, rest;
  words >> command >> argument >> rest;
  std::uint64_t number = 0;
  const bool has_number = absl::SimpleAtoi(argument, &number) && rest.empty();
  if (command == "take" && has_number) {
    HOLDFAST_RETURN_IF_ERROR(taken.TakeAndWrite(stream, number));
    return number;
  }
  if (command == "fill" && has_number) return filled.TakeAllBut(number);
  if (command == "release" && argument.empty()) {
    HOLDFAST_RETURN_IF_ERROR(taken.Release());
    HOLDFAST_ASSIGN_OR_RETURN(const MemoryUse memory, device.Memory());
    return memory.own_bytes;
  }
  return MakeError({.kind = ErrorKind::kInvalidArgument, .object = line},
                   "is none of: take BYTES, release, fill SLACK");
}

}  // namespace

absl::Status Scribble(const std::string& device_spec, std::uint64_t bytes) {
  HOLDFAST_ASSIGN_OR_RETURN(
      const std::unique_ptr<Device> device,
      OpenDevice(device_spec, {.host_capacity_bytes = AlignUp(bytes + kMiB, 2 * kMiB)}));
  HOLDFAST_ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream, device->CreateStream("scribble"));
  TakenMemory taken(*device);
  HOLDFAST_RETURN_IF_ERROR(taken.TakeAndWrite(*stream, bytes));
  return taken.Release();
}

absl::Status ScribbleInChild(const ScribblerProgram& program, const std::string& device_spec,
                             std::uint64_t bytes) {
  HOLDFAST_ASSIGN_OR_RETURN(
      const std::unique_ptr<ChildProcess> child,
      ChildProcess::Start(program.path,
                          program.With({"--device", device_spec, "--bytes", absl::StrCat(bytes)})));
  return child->WaitForEnd();
}

absl::Status ServeNeighbour(const std::string& device_spec, std::istream& in, std::ostream& out) {
  HOLDFAST_ASSIGN_OR_RETURN(const std::unique_ptr<Device> device,
                            OpenDevice(device_spec, {.host_capacity_bytes = kHostCapacity}));
  HOLDFAST_ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream,
                            device->CreateStream("neighbour"));
  TakenMemory taken(*device), filled(*device);
  for (std::string line; std::getline(in, line);) {
    const absl::StatusOr<std::uint64_t> done = Serve(line, *device, *stream, taken, filled);
    if (done.ok()) {
      out << "ok " << *done << std::endl;
    } else {
      out << "error " << std::string(done.status().message()) << std::endl;
    }
  }
  HOLDFAST_RETURN_IF_ERROR(taken.Release());
  return filled.Release();
}

absl::StatusOr<std::unique_ptr<Neighbour>> Neighbour::Start(const ScribblerProgram& program,
                                                            const std::string& device_spec) {
  HOLDFAST_ASSIGN_OR_RETURN(
      std::unique_ptr<ChildProcess> child,
      ChildProcess::Start(program.path, program.With({"--serve", "--device", device_spec})));
  std::unique_ptr<Neighbour> neighbour(new Neighbour(std::move(child)));
  HOLDFAST_RETURN_IF_ERROR(neighbour->Release());  // answered when the context is up
  return neighbour;
}

absl::StatusOr<std::uint64_t> Neighbour::Ask(const std::string& command) {
  HOLDFAST_ASSIGN_OR_RETURN(const std::string answer, child_->Ask(command));
  absl::string_view rest = answer;
  std::uint64_t number = 0;
  if (absl::ConsumePrefix(&rest, "ok ") && absl::SimpleAtoi(rest, &number)) return number;
  return MakeError({.kind = ErrorKind::kInternal, .object = "neighbour"},
                   absl::StrCat("answers '", command, "' with: ", answer));
}

absl::Status Neighbour::Take(std::uint64_t bytes) {
  return Ask(absl::StrCat("take ", bytes)).status();
}
absl::Status Neighbour::Release() { return Ask("release").status(); }
absl::StatusOr<std::uint64_t> Neighbour::FillAllBut(std::uint64_t slack) {
  return Ask(absl::StrCat("fill ", slack));
}

}  // namespace holdfast::testing
