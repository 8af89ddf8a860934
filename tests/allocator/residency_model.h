// A residency under random operations, beside a model of what must be true after each of them:
// contents byte for byte (mirrored on the host), residency by tag, addresses, epoch and books.
//
//   RandomResidency random(seed);
//   for (int i = 0; i < n; ++i) random.Step();
//   random.End();
//   EXPECT_EQ(random.problem(), "");
#ifndef HOLDFAST_TESTS_ALLOCATOR_RESIDENCY_MODEL_H_
#define HOLDFAST_TESTS_ALLOCATOR_RESIDENCY_MODEL_H_

#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "allocator/residency.h"
#include "tests/allocator/bytes_on_device.h"
#include "tests/allocator/replayer.h"

namespace holdfast {

// What the model knows of one span.
struct ModelSpan {
  SpanSpec spec;
  SpanId id;
  AddressRange range;           // as it was given; must never change
  std::uint64_t committed = 0;  // bytes of it that have pages when awake
  Bytes bytes;                  // its contents; meaningless unless `known`
  bool known = true;            // undefined spans: nothing is promised
};

class RandomResidency {
 public:
  explicit RandomResidency(std::uint64_t seed);
  ~RandomResidency();

  // One operation of a random kind, then what is cheap to check.
  void Step();
  // Wakes everything, compares every byte, ends all but the device, and balances the books.
  void End();

  // The first thing that was not as the model says; empty: all is well.
  const std::string& problem() const { return problem_; }
  Residency& residency() { return *residency_; }
  // How often each kind of operation ran, and "failed sleep", "failed wake": for tests that want
  // all of them to have been tried.
  const std::map<std::string, int>& counts() const { return counts_; }

 private:
  // Operations
  void Sleep();
  void Wake();
  void Rewrite();
  void SealOrUnseal();
  void CommitMore();
  void ReserveAnother();
  void FreeOne();
  void PrepareHost();
  void Trim();
  void HoldOrLetGo();

  void Build();
  void AddSpan(SpanSpec spec, std::uint64_t committed);
  absl::Status RefillTable(Stream& stream, AddressRange span);
  // Arms a failure at a random call of a random kind, now and then. True if armed.
  bool MaybeArm();
  bool Chance(int percent) { return static_cast<int>(random_() % 100) < percent; }
  std::vector<std::string> SomeTags();

  // What a transition that was or was not to fail may have left.
  void AfterSleep(const std::vector<std::string>& tags, const absl::Status& status);
  void Restore(const std::string& tag);        // dropped contents as declared
  void AcceptDropped(const std::string& tag);  // as they were, or as declared: whichever is seen

  void CheckCheap();
  void CheckContents(const std::string& tag);
  // Reads `span`'s committed part and compares; true if it holds `expected`.
  bool Holds(const ModelSpan& span, const Bytes& expected);
  void Write(ModelSpan& span, std::uint64_t offset, std::uint64_t bytes);
  void Complain(const std::string& what);
  void ExpectOk(const absl::Status& status, const std::string& what);

  std::uint64_t seed_;
  std::mt19937_64 random_;
  int step_ = 0;
  std::string operation_;
  std::string problem_;
  std::map<std::string, int> counts_;

  std::unique_ptr<Device> device_;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<Residency> residency_;
  std::unique_ptr<Stream> stream_;
  HostBuffer room_;         // for reads and writes: one span
  HostBuffer refill_room_;  // holds what the table's hook writes
  std::vector<std::unique_ptr<Replayer>> replayers_;

  std::map<std::string, ModelSpan> spans_;
  std::map<std::string, bool> asleep_;  // by tag
  bool sealed_ = false;                 // the weights
  bool background_ = false;  // host memory is being prepared: a failure may come to light later
  RegistrationId hold_;      // 0: none
  std::string held_tag_;
  int reserved_ = 0;  // how many spans were added, for their names
};

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_ALLOCATOR_RESIDENCY_MODEL_H_
