#include "tools/scribble.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "device/bytes.h"
#include "device/device.h"

extern char** environ;

namespace holdfast {
namespace {

constexpr std::uint64_t kPieceBytes = 256 * kMiB;
constexpr std::uint8_t kPattern = 0xA5;

absl::Status ScribbleOver(Device& device, Stream& stream, AddressRange window, HostBuffer& word) {
  HOLDFAST_RETURN_IF_ERROR(device.Fill(stream, window.base, kPattern, window.bytes));
  HOLDFAST_RETURN_IF_ERROR(device.CopyToHost(
      stream, word.data(), window.base + (window.bytes - word.size()), word.size()));
  HOLDFAST_RETURN_IF_ERROR(device.Synchronize(stream));
  for (std::uint64_t i = 0; i < word.size(); ++i) {
    if (word.data()[i] != std::byte{kPattern}) {
      return MakeError({.kind = ErrorKind::kCorrupted, .object = "scribbled memory"},
                       "does not hold what was written");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Scribble(const std::string& device_spec, std::uint64_t bytes) {
  HOLDFAST_ASSIGN_OR_RETURN(
      const std::unique_ptr<Device> device,
      OpenDevice(device_spec, {.host_capacity_bytes = AlignUp(bytes + kMiB, 2 * kMiB)}));
  const std::uint64_t granularity = device->info().granularity;
  bytes = AlignDown(bytes, granularity);
  if (bytes == 0) return absl::OkStatus();
  HOLDFAST_ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream, device->CreateStream("scribble"));
  HOLDFAST_ASSIGN_OR_RETURN(HostBuffer word, device->AllocateHost(64));
  HOLDFAST_ASSIGN_OR_RETURN(const AddressRange window, device->ReserveAddress(bytes, {}));

  // All pieces are held before any is written: together they are the memory that was freed.
  struct Piece {
    AddressRange range;
    ChunkHandle chunk;
  };
  std::vector<Piece> pieces;
  absl::Status status;
  for (std::uint64_t at = 0; at < bytes && status.ok(); at += kPieceBytes) {
    const AddressRange range{window.base + at, std::min(kPieceBytes, bytes - at)};
    const absl::StatusOr<ChunkHandle> chunk = device->CreateChunk(range.bytes);
    status = chunk.status();
    if (!status.ok()) break;
    pieces.push_back({range, *chunk});
    status = device->Map(range.base, range.bytes, *chunk);
    if (status.ok()) status = device->SetAccess(range, Access::kReadWrite);
  }
  for (const Piece& piece : pieces) {
    if (status.ok()) status = ScribbleOver(*device, *stream, piece.range, word);
  }
  for (const Piece& piece : pieces) {
    status.Update(device->Unmap(piece.range));
    status.Update(device->ReleaseChunk(piece.chunk));
  }
  status.Update(device->FreeAddress(window));
  return status;
}

absl::Status ScribbleInChild(const std::string& device_spec, std::uint64_t bytes) {
  const auto failed = [](const std::string& why, int code) {
    return MakeError({.kind = ErrorKind::kInternal, .object = "holdfast scribble", .code = code},
                     why);
  };
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) return failed("no pipe to the child", errno);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDERR_FILENO);
  posix_spawn_file_actions_addclose(&actions, pipe_ends[0]);
  posix_spawn_file_actions_addclose(&actions, pipe_ends[1]);

  std::vector<std::string> words = {"holdfast",  "scribble", "--device",
                                    device_spec, "--bytes",  absl::StrCat(bytes)};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int spawned =
      posix_spawn(&child, "/proc/self/exe", &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(pipe_ends[1]);
  if (spawned != 0) {
    close(pipe_ends[0]);
    return failed("the child did not start", spawned);
  }
  std::string said;
  char buffer[512];
  for (ssize_t n; (n = read(pipe_ends[0], buffer, sizeof(buffer))) > 0;) {
    said.append(buffer, static_cast<std::size_t>(n));
  }
  close(pipe_ends[0]);
  int exit_state = 0;
  while (waitpid(child, &exit_state, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(exit_state) && WEXITSTATUS(exit_state) == 0) return absl::OkStatus();
  return failed(absl::StrCat("the child said: ", said), exit_state);
}

}  // namespace holdfast
