// Verifies that sleep moves what changed and nothing else, and that it never trusts what somebody
// could have written.
#include "gtest/gtest.h"
#include "tests/allocator/residency_rig.h"

namespace holdfast {
namespace {

constexpr std::uint64_t kLeaves = 64;

// One kept group of 64 leaves in four chunks; one span a leaf.
class LeafRig {
 public:
  explicit LeafRig(Role role, const ResidencyOptions& options = {}) : device(TestDevice()) {
    Build(role, options);
  }
  void Rewrite(std::uint64_t leaf, std::uint64_t seed) {
    WriteBytes(*device, *stream, arena->range(spans[leaf]).base, Pattern(5000, seed));
  }
  bool Holds(std::uint64_t leaf, std::uint64_t seed) {
    return ReadBytes(*device, *stream, {arena->range(spans[leaf]).base, 5000}) ==
           Pattern(5000, seed);
  }
  // Sleeps and wakes; the row of the sleep.
  TagTransition Cycle() {
    absl::StatusOr<TransitionReport> slept = residency->Sleep({"w"}, Soon());
    EXPECT_OK(slept);
    EXPECT_OK(residency->Wake({"w"}));
    return slept.ok() && !slept->tags.empty() ? slept->tags[0] : TagTransition{};
  }
  std::uint64_t copies() { return device->calls().succeeded(Call::kCopy); }

  std::unique_ptr<Device> device;
  std::unique_ptr<Stream> stream;
  std::unique_ptr<Arena> arena;
  std::unique_ptr<Residency> residency;
  std::vector<SpanId> spans;

 private:
  void Build(Role role, const ResidencyOptions& options) {
    absl::StatusOr<std::unique_ptr<Stream>> work = device->CreateStream("test");
    ASSERT_OK(work);
    stream = *std::move(work);
    const std::uint64_t bytes = kLeaves * kHashLeafBytes;
    absl::StatusOr<std::unique_ptr<Arena>> made =
        Arena::Create(*device, {.groups = {{"w", role, bytes, bytes / 4}}});
    ASSERT_OK(made);
    arena = *std::move(made);
    for (std::uint64_t leaf = 0; leaf < kLeaves; ++leaf) {
      absl::StatusOr<SpanId> span = arena->Reserve({.name = "leaf " + std::to_string(leaf),
                                                    .tag = "w",
                                                    .role = role,
                                                    .bytes = kHashLeafBytes});
      ASSERT_OK(span);
      spans.push_back(*span);
    }
    ASSERT_OK(arena->CommitTag("w"));
    for (std::uint64_t leaf = 0; leaf < kLeaves; ++leaf) Rewrite(leaf, leaf);
    absl::StatusOr<std::unique_ptr<Residency>> over = Residency::Create(*arena, options);
    ASSERT_OK(over);
    residency = *std::move(over);
  }
};

TEST(ResidencyChangesTest, OneChangedLeafOf64MovesAlone) {
  LeafRig rig(Role::kMutable);
  EXPECT_EQ(rig.Cycle().kept_bytes, kLeaves * kHashLeafBytes);
  const TagTransition unchanged = rig.Cycle();
  EXPECT_EQ(unchanged.kept_bytes, 0u);
  EXPECT_EQ(unchanged.clean_bytes, kLeaves * kHashLeafBytes);

  rig.Rewrite(17, 1000);
  const std::uint64_t before = rig.copies();
  ASSERT_OK_AND_ASSIGN(const TransitionReport slept, rig.residency->Sleep({"w"}, Soon()));
  EXPECT_EQ(rig.copies(), before + 1);
  EXPECT_EQ(slept.tags[0].kept_bytes, kHashLeafBytes);
  EXPECT_EQ(slept.tags[0].clean_bytes, (kLeaves - 1) * kHashLeafBytes);
  ASSERT_OK(rig.residency->Wake({"w"}));
  for (std::uint64_t leaf = 0; leaf < kLeaves; ++leaf) {
    EXPECT_TRUE(rig.Holds(leaf, leaf == 17 ? 1000 : leaf)) << leaf;
  }
}

// Neighbours that changed go in one copy, but never across chunks: their rooms are apart.
TEST(ResidencyChangesTest, NeighbouringChangesShareACopy) {
  LeafRig rig(Role::kMutable);
  rig.Cycle();
  for (const std::uint64_t leaf : {3, 4, 5, 15, 16, 40}) rig.Rewrite(leaf, 2000 + leaf);
  const std::uint64_t before = rig.copies();
  ASSERT_OK(rig.residency->Sleep({"w"}, Soon()));
  EXPECT_EQ(rig.copies(), before + 4);  // 3-5, 15 | 16 | 40
  ASSERT_OK(rig.residency->Wake({"w"}));
  for (const std::uint64_t leaf : {3, 4, 5, 15, 16, 40}) {
    EXPECT_TRUE(rig.Holds(leaf, 2000 + leaf)) << leaf;
  }
}

// Hashes of neighbouring chunks are taken in one launch.
TEST(ResidencyChangesTest, ChunksOfAGroupAreHashedTogether) {
  LeafRig rig(Role::kMutable);
  rig.Cycle();
  const std::uint64_t before = rig.device->calls().succeeded(Call::kHash);
  ASSERT_OK(rig.residency->Sleep({"w"}, Soon()));
  EXPECT_EQ(rig.device->calls().succeeded(Call::kHash), before + 1);
}

// The seal proves it: neither hash nor copy. Unsealed and rewritten, one leaf moves.
TEST(ResidencyChangesTest, UnsealAndRewriteMovesTheLeaf) {
  LeafRig rig(Role::kImmutable);
  ASSERT_OK(rig.arena->Seal("w"));
  rig.Cycle();
  const std::uint64_t copies = rig.copies();
  const std::uint64_t hashes = rig.device->calls().succeeded(Call::kHash);
  ASSERT_OK(rig.residency->Sleep({"w"}, Soon()));
  EXPECT_EQ(rig.copies(), copies);
  EXPECT_EQ(rig.device->calls().succeeded(Call::kHash), hashes);
  EXPECT_THAT(rig.arena->Unseal("w"), IsErrorKind(ErrorKind::kAsleep));
  ASSERT_OK(rig.residency->Wake({"w"}));

  ASSERT_OK(rig.arena->Unseal("w"));
  rig.Rewrite(9, 3000);
  ASSERT_OK(rig.arena->Seal("w"));
  EXPECT_EQ(rig.Cycle().kept_bytes, kHashLeafBytes);
  EXPECT_TRUE(rig.Holds(9, 3000));
  EXPECT_TRUE(rig.Holds(10, 10));
  EXPECT_EQ(rig.Cycle().kept_bytes, 0u);
}

// Somebody else can write what we map read-only: then the seal proves nothing, also after he left.
TEST(ResidencyChangesTest, AWriterVoidsTheSeal) {
  LeafRig rig(Role::kImmutable);
  ASSERT_OK(rig.arena->Seal("w"));
  rig.Cycle();
  const auto hook = [](const SpanInfo&) { return absl::OkStatus(); };
  const auto add = [&](bool writes) {
    return rig.arena->registrations().Add({.holder = "alias",
                                           .kind = HolderKind::kWritableAlias,
                                           .spans = {rig.spans[30]},
                                           .writes = writes,
                                           .before_unmap = hook,
                                           .after_map = hook});
  };
  const auto hashed_at_sleep = [&] {
    const std::uint64_t hashes = rig.device->calls().succeeded(Call::kHash);
    EXPECT_OK(rig.residency->Sleep({"w"}, Soon()));
    const bool hashed = rig.device->calls().succeeded(Call::kHash) > hashes;
    EXPECT_OK(rig.residency->Wake({"w"}));
    return hashed;
  };
  ASSERT_OK_AND_ASSIGN(const RegistrationId reader, add(/*writes=*/false));
  EXPECT_FALSE(hashed_at_sleep());
  ASSERT_OK(rig.arena->registrations().Remove(reader));

  ASSERT_OK_AND_ASSIGN(const RegistrationId writer, add(/*writes=*/true));
  EXPECT_TRUE(hashed_at_sleep());
  EXPECT_TRUE(hashed_at_sleep());
  ASSERT_OK(rig.arena->registrations().Remove(writer));
  EXPECT_TRUE(hashed_at_sleep());  // once more: he may have written since
  EXPECT_FALSE(hashed_at_sleep());

  ASSERT_OK_AND_ASSIGN(const RegistrationId passing, add(/*writes=*/true));
  ASSERT_OK(rig.arena->registrations().Remove(passing));
  EXPECT_TRUE(hashed_at_sleep());
}

// The control: a sleep that trusts every backup brings old contents back, and the hashes show it.
TEST(ResidencyChangesTest, TrustingAStaleBackupIsCaught) {
  LeafRig rig(Role::kMutable);
  rig.Cycle();
  for (const bool trust_stale : {false, true}) {
    rig.Rewrite(20, trust_stale ? 4001 : 4000);
    ASSERT_OK_AND_ASSIGN(const auto before, rig.residency->HashKept());
    rig.residency->PlantFaults({.trust_stale = trust_stale});
    EXPECT_EQ(rig.Cycle().kept_bytes, trust_stale ? 0 : kHashLeafBytes);
    ASSERT_OK_AND_ASSIGN(const auto after, rig.residency->HashKept());
    EXPECT_EQ(before == after, !trust_stale);
  }
}

TEST(ResidencyChangesTest, WithoutComparisonEverythingMoves) {
  LeafRig rig(Role::kMutable, {.detect_unchanged = false});
  EXPECT_EQ(rig.Cycle().kept_bytes, kLeaves * kHashLeafBytes);
  EXPECT_EQ(rig.Cycle().kept_bytes, kLeaves * kHashLeafBytes);
  EXPECT_TRUE(rig.Holds(5, 5));
}

// A copy that fails half-way must not leave a backup that looks right.
TEST(ResidencyChangesTest, AFailedCopyLeavesHonestFlags) {
  LeafRig rig(Role::kMutable);
  rig.Cycle();
  for (const Call call : {Call::kCopy, Call::kSynchronize, Call::kHash}) {
    for (std::uint64_t k = 1; k <= 3; ++k) {
      const std::uint64_t seed = 5000 + 10 * static_cast<std::uint64_t>(call) + k;
      rig.Rewrite(8, seed);
      rig.Rewrite(50, seed);
      rig.device->calls().FailAt(k, {call});
      const bool slept = rig.residency->Sleep({"w"}, Soon()).ok();
      EXPECT_NE(rig.device->calls().Disarm(), slept);
      if (!slept) {
        // Back to what the backup held before: equal to its old hash, if it still has one.
        rig.Rewrite(8, 8);
        ASSERT_OK(rig.residency->Sleep({"w"}, Soon()));
      }
      ASSERT_OK(rig.residency->Wake({"w"}));
      EXPECT_TRUE(rig.Holds(8, slept ? seed : 8));
      EXPECT_TRUE(rig.Holds(50, seed));
      rig.Rewrite(8, 8);
      rig.Cycle();
    }
  }
}

// Host memory is exact: what the spans take, rounded up to a page. Field case 34.
TEST(ResidencyChangesTest, BackupsAreExact) {
  auto device = TestDevice();
  const std::uint64_t g = device->info().granularity;
  const std::uint64_t bytes = g + g / 4 + 100;
  std::vector<GroupSpec> groups;
  for (int i = 0; i < 8; ++i) groups.push_back({std::to_string(i), Role::kMutable, bytes, 2 * g});
  ASSERT_OK_AND_ASSIGN(auto arena, Arena::Create(*device, {.groups = groups}));
  std::vector<std::string> tags;
  for (const GroupSpec& group : groups) {
    tags.push_back(group.tag);
    ASSERT_OK(arena->Reserve({.name = group.tag, .tag = group.tag, .bytes = bytes}));
    ASSERT_OK(arena->CommitTag(group.tag));
  }
  ASSERT_OK_AND_ASSIGN(auto residency, Residency::Create(*arena));
  ASSERT_OK_AND_ASSIGN(const TransitionReport slept, residency->Sleep(tags, Soon()));
  EXPECT_EQ(slept.backing_bytes, 8 * AlignUp(bytes, 4 * kKiB));
  EXPECT_EQ(slept.freed_bytes, 8 * 2 * g);
}

}  // namespace
}  // namespace holdfast
