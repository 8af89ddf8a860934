// Verifies that exported spans are read where they are imported, in another device and another
// process, and that an import whose pages were replaced is recognised. Field case 33.
#include "allocator/export.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "allocator/imported_span.h"
#include "gtest/gtest.h"
#include "tests/allocator/residency_rig.h"

extern char** environ;

namespace holdfast {
namespace {

constexpr char kChildVariable[] = "HOLDFAST_TEST_IMPORT_BYTES";
constexpr int kChildFile = 100;
constexpr std::uint64_t kSeed = 33;

ImportSpec SpecOf(const SpanExport& exported, Access access = Access::kRead) {
  ImportSpec spec{.name = exported.name,
                  .bytes = exported.bytes,
                  .offset = exported.offset,
                  .pieces = {},
                  .access = access};
  for (const ExportedPiece& piece : exported.pieces) {
    spec.pieces.push_back({&piece.file, piece.range.bytes});
  }
  return spec;
}

class ExportTest : public testing::Test {
 protected:
  ExportTest() {
    const auto shared = [&](const char* tag, Role role) {
      return GroupSpec{
          .tag = tag, .role = role, .extent_bytes = 4 * g_, .chunk_bytes = g_, .shareable = true};
    };
    auto arena = Arena::Create(*device_, {.groups = {shared("state", Role::kMutable),
                                                     shared("weights", Role::kImmutable),
                                                     {"private", Role::kMutable, g_, g_}}});
    EXPECT_OK(arena);
    arena_ = *std::move(arena);
    auto stream = device_->CreateStream("test");
    EXPECT_OK(stream);
    stream_ = *std::move(stream);
    auto other_stream = other_->CreateStream("importer");
    EXPECT_OK(other_stream);
    other_stream_ = *std::move(other_stream);
    auto residency = Residency::Create(*arena_);
    EXPECT_OK(residency);
    residency_ = *std::move(residency);
    small_ = Add("small", "state", Role::kMutable, 1000);
    x_ = Add("x", "state", Role::kMutable, 2 * g_ - 1024);  // ends in the second chunk
    private_ = Add("private", "private", Role::kMutable, 100);
    for (const char* tag : {"state", "private"}) EXPECT_OK(arena_->CommitTag(tag));
    WriteBytes(*device_, *stream_, arena_->range(x_).base, Pattern(2 * g_ - 1024, kSeed));
  }
  SpanId Add(const char* name, const char* tag, Role role, std::uint64_t bytes) {
    auto id = arena_->Reserve({.name = name, .tag = tag, .role = role, .bytes = bytes});
    EXPECT_OK(id);
    return id.ok() ? *id : SpanId{};
  }
  absl::StatusOr<SpanExport> ExportX(const HolderHook& before = {}, const HolderHook& after = {}) {
    return Export(*arena_, x_, {.holder = "trainer", .before_unmap = before, .after_map = after});
  }

  std::unique_ptr<Device> device_ = TestDevice();
  std::unique_ptr<Device> other_ = TestDevice();
  const std::uint64_t g_ = device_->info().granularity;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<Stream> stream_, other_stream_;
  std::unique_ptr<Residency> residency_;
  SpanId small_, x_, private_;
};

TEST_F(ExportTest, AnImportReadsTheSpanAndAnOldOneIsStaleAfterAWake) {
  std::unique_ptr<ImportedSpan> imported;
  const auto let_go = [&](const SpanInfo& span) {
    EXPECT_EQ(span.spec.name, "x");
    imported.reset();
    return absl::OkStatus();
  };
  const auto nothing = [](const SpanInfo&) { return absl::OkStatus(); };
  ASSERT_OK_AND_ASSIGN(const SpanExport old, ExportX(let_go, nothing));
  ASSERT_OK_AND_ASSIGN(imported, ImportedSpan::Open(*other_, SpecOf(old)));
  EXPECT_EQ(ReadBytes(*other_, *other_stream_, imported->range()), Pattern(old.bytes, kSeed));
  EXPECT_EQ(imported->reserved().bytes, 2 * g_);  // what holds the span, and not a byte more
  EXPECT_OK(CheckCurrent(*arena_, old));

  ASSERT_OK(residency_->Sleep({"state"}, Soon()));
  EXPECT_EQ(imported, nullptr);
  const absl::Status asleep = CheckCurrent(*arena_, old);
  EXPECT_THAT(asleep, IsErrorKind(ErrorKind::kStale));
  EXPECT_EQ(GetErrorInfo(asleep)->object, "x");
  ASSERT_OK(residency_->Wake({"state"}));
  EXPECT_THAT(CheckCurrent(*arena_, old), IsErrorKind(ErrorKind::kStale));

  WriteBytes(*device_, *stream_, arena_->range(x_).base, Pattern(old.bytes, 77));
  ASSERT_OK(EndExport(*arena_, old));
  EXPECT_THAT(EndExport(*arena_, old), IsErrorKind(ErrorKind::kNotFound));
  ASSERT_OK_AND_ASSIGN(const SpanExport now, ExportX());
  EXPECT_OK(CheckCurrent(*arena_, now));
  ASSERT_OK_AND_ASSIGN(imported, ImportedSpan::Open(*other_, SpecOf(now)));
  EXPECT_EQ(ReadBytes(*other_, *other_stream_, imported->range()), Pattern(old.bytes, 77));
  imported.reset();
  EXPECT_TRUE(other_->calls().Balanced());
}

// An importer that does not let go keeps reading the old pages: why the check is there.
TEST_F(ExportTest, AnImportThatStayedReadsWhatNobodyWritesAnyMore) {
  const auto nothing = [](const SpanInfo&) { return absl::OkStatus(); };
  ASSERT_OK_AND_ASSIGN(const SpanExport old, ExportX(nothing, nothing));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ImportedSpan> imported,
                       ImportedSpan::Open(*other_, SpecOf(old)));
  ASSERT_OK(residency_->Sleep({"state"}, Soon()));
  ASSERT_OK(residency_->Wake({"state"}));
  WriteBytes(*device_, *stream_, arena_->range(x_).base, Pattern(old.bytes, 78));
  EXPECT_EQ(ReadBytes(*other_, *other_stream_, imported->range()), Pattern(old.bytes, kSeed));
  EXPECT_THAT(CheckCurrent(*arena_, old), IsErrorKind(ErrorKind::kStale));
}

TEST_F(ExportTest, AHolderWithoutHooksKeepsTheSpanFromSleepAndFree) {
  ASSERT_OK_AND_ASSIGN(const SpanExport held, ExportX());
  for (const absl::Status& refused :
       {residency_->Sleep({"state"}, Soon()).status(), arena_->Free(x_, Soon())}) {
    EXPECT_THAT(refused, IsErrorKind(ErrorKind::kHeld));
    EXPECT_NE(refused.message().find("trainer"), absl::string_view::npos);
  }
  EXPECT_OK(CheckCurrent(*arena_, held));
  ASSERT_OK(EndExport(*arena_, held));
  EXPECT_OK(residency_->Sleep({"state"}, Soon()));
}

TEST_F(ExportTest, RefusesWhatCannotBeExported) {
  const auto status = [&](SpanId span, const ExportOptions& options = {.holder = "peer"}) {
    return Export(*arena_, span, options).status();
  };
  const absl::Status unshared = status(private_);
  EXPECT_THAT(unshared, IsErrorKind(ErrorKind::kUnsupported));
  EXPECT_EQ(GetErrorInfo(unshared)->object, "private");
  EXPECT_THAT(status(SpanId{}), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(status(x_, {.holder = ""}), IsErrorKind(ErrorKind::kInvalidArgument));
  const SpanId w = Add("w", "weights", Role::kImmutable, g_);
  EXPECT_THAT(status(w), IsErrorKind(ErrorKind::kInvalidArgument)) << "not committed";
  ASSERT_OK(arena_->CommitTag("weights"));
  ASSERT_OK(arena_->Seal("weights"));
  EXPECT_THAT(status(w, {.holder = "peer", .writable = true}),
              IsErrorKind(ErrorKind::kUnsupported));
  EXPECT_TRUE(arena_->registrations().all().empty());
  ASSERT_OK(residency_->Sleep({"state"}, Soon()));
  EXPECT_THAT(status(x_), IsErrorKind(ErrorKind::kAsleep));
  EXPECT_OK(status(w));
  EXPECT_FALSE(arena_->registrations().all().front().registration.writes);
}

TEST_F(ExportTest, AWritableImportWritesAndAReadOnlyOneDoesNot) {
  ASSERT_OK_AND_ASSIGN(const SpanExport exported,
                       Export(*arena_, x_, {.holder = "trainer", .writable = true}));
  EXPECT_TRUE(arena_->registrations().all().front().registration.writes);
  ASSERT_OK_AND_ASSIGN(const auto reader, ImportedSpan::Open(*other_, SpecOf(exported)));
  EXPECT_FALSE(other_->Fill(*other_stream_, reader->range().base, 1, 64).ok());
  ASSERT_OK_AND_ASSIGN(const auto writer,
                       ImportedSpan::Open(*other_, SpecOf(exported, Access::kReadWrite)));
  ASSERT_OK(other_->Fill(*other_stream_, writer->range().base, 0x3c, 64));
  ASSERT_OK(other_->Synchronize(*other_stream_));
  EXPECT_TRUE(AllBytesAre(ReadBytes(*device_, *stream_, {arena_->range(x_).base, 64}), 0x3c));
}

TEST_F(ExportTest, AFailedImportLeavesNothing) {
  ASSERT_OK_AND_ASSIGN(const SpanExport exported, ExportX());
  for (std::uint64_t k = 1;; ++k) {
    other_->calls().FailAt(k);
    const absl::Status opened = ImportedSpan::Open(*other_, SpecOf(exported)).status();
    const bool fired = other_->calls().Disarm();
    EXPECT_TRUE(other_->calls().Balanced()) << "call " << k;
    EXPECT_EQ(other_->Memory()->imported_bytes, 0u) << "call " << k;
    if (opened.ok()) {
      EXPECT_GT(k, 5u);
      break;
    }
    ASSERT_TRUE(fired) << opened;
  }
  ImportSpec beyond = SpecOf(exported);
  beyond.offset += g_;
  EXPECT_THAT(ImportedSpan::Open(*other_, beyond), IsErrorKind(ErrorKind::kInvalidArgument));
  EXPECT_THAT(ImportedSpan::Open(*other_, {.name = "none", .pieces = {}}),
              IsErrorKind(ErrorKind::kInvalidArgument));
}

// The child's half of the test below; alone it has nothing to do.
TEST(ExportChild, ReadsWhatTheParentExported) {
  const char* bytes_text = std::getenv(kChildVariable);
  if (bytes_text == nullptr) GTEST_SKIP() << "only as a child of AnotherProcessReadsTheSpan";
  const std::uint64_t bytes = std::strtoull(bytes_text, nullptr, 10);
  const std::unique_ptr<Device> device = TestDevice();
  const FileDescriptor file(kChildFile);
  ASSERT_OK_AND_ASSIGN(
      const auto imported,
      ImportedSpan::Open(*device,
                         {.name = "from parent", .bytes = bytes, .pieces = {{&file, bytes}}}));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Stream> stream, device->CreateStream("child"));
  EXPECT_EQ(ReadBytes(*device, *stream, imported->range()), Pattern(bytes, kSeed));
}

TEST_F(ExportTest, AnotherProcessReadsTheSpan) {
  const SpanId w = Add("w", "weights", Role::kImmutable, g_);
  ASSERT_OK(arena_->CommitTag("weights"));
  WriteBytes(*device_, *stream_, arena_->range(w).base, Pattern(g_, kSeed));
  ASSERT_OK_AND_ASSIGN(const SpanExport exported, Export(*arena_, w, {.holder = "child"}));
  ASSERT_EQ(exported.pieces.size(), 1u);
  ASSERT_EQ(setenv(kChildVariable, std::to_string(g_).c_str(), 1), 0);
  posix_spawn_file_actions_t files;
  ASSERT_EQ(posix_spawn_file_actions_init(&files), 0);
  posix_spawn_file_actions_adddup2(&files, exported.pieces[0].file.get(), kChildFile);
  std::string program = "/proc/self/exe", filter = "--gtest_filter=ExportChild.*";
  char* const arguments[] = {program.data(), filter.data(), nullptr};
  pid_t child = 0;
  ASSERT_EQ(posix_spawn(&child, program.c_str(), &files, nullptr, arguments, environ), 0);
  unsetenv(kChildVariable);
  posix_spawn_file_actions_destroy(&files);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace holdfast
