// Verifies the adapters: their scratch is measured and served like any other, on a GPU by the
// libraries themselves, on every device by calls that behave as those do.
#include "tests/allocator/library_adapters.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "allocator/adapters/cub.h"
#include "allocator/adapters/cublaslt.h"
#include "tests/device/device_fixture.h"

namespace holdfast {
namespace {

class LibraryAdaptersTest : public DeviceTest {
 protected:
  LibraryAdaptersTest() {
    arena_ =
        *Arena::Create(*device_, {.groups = {{"state", Role::kMutable, 8 * kMiB, 8 * kMiB},
                                             {"workspace", Role::kScratch, 64 * kMiB, 64 * kMiB}}});
    data_ = *arena_->Reserve({.name = "data", .tag = "state", .bytes = kMiB});
    EXPECT_OK(arena_->CommitTag("state"));
  }
  // Measures the step, gives it the scratch it asked for, and runs it.
  absl::Status Run(const Step& step) {
    HOLDFAST_ASSIGN_OR_RETURN(plan_, MeasureStep(*arena_, *stream_, "step", step));
    HOLDFAST_ASSIGN_OR_RETURN(const SpanId workspace, arena_->Reserve({.name = "workspace",
                                                                       .tag = "workspace",
                                                                       .role = Role::kScratch,
                                                                       .bytes = plan_.height}));
    HOLDFAST_RETURN_IF_ERROR(arena_->CommitTag("workspace"));
    range_ = arena_->range(workspace);
    ScratchSession scratch = ScratchSession::Serve("step", range_.base, range_.bytes, plan_);
    StepContext context(*device_, *stream_, ArenaView(*arena_), scratch);
    HOLDFAST_RETURN_IF_ERROR(step(context));
    HOLDFAST_RETURN_IF_ERROR(scratch.Finish());
    return device_->Synchronize(*stream_);
  }

  std::unique_ptr<Arena> arena_;
  SpanId data_;
  ScratchPlan plan_;
  AddressRange range_;
};

TEST_F(LibraryAdaptersTest, CubStorageIsAskedForWhileMeasuringAndServedFromTheArena) {
  int queries = 0, runs = 0;
  const Step step = [&](StepContext& context) {
    return WithCubStorage(context, "scan", [&](void* storage, std::size_t& bytes, CUstream_st*) {
      if (storage == nullptr) {
        bytes = 3000;
        ++queries;
        return 0;
      }
      ++runs;
      EXPECT_EQ(bytes, 3000u);
      EXPECT_TRUE(range_.Contains({reinterpret_cast<std::uint64_t>(storage)}));
      return 0;
    });
  };
  ASSERT_OK(Run(step));
  EXPECT_EQ(queries, 2);
  EXPECT_EQ(runs, 1) << "measuring enqueues nothing";
  EXPECT_EQ(plan_.requests[0].bytes, 3000u);
}

TEST_F(LibraryAdaptersTest, NoStorageIsStillAnAddress) {
  bool ran = false;
  ASSERT_OK(Run([&](StepContext& context) {
    return WithCubStorage(context, "tiny", [&](void* storage, std::size_t& bytes, CUstream_st*) {
      ran = ran || storage != nullptr;
      if (storage == nullptr) bytes = 0;
      return 0;
    });
  }));
  EXPECT_TRUE(ran);
}

TEST_F(LibraryAdaptersTest, ALibrarysErrorIsTypedWithItsCode) {
  const absl::Status query = Run([](StepContext& context) {
    return WithCubStorage(context, "scan", [](void*, std::size_t&, CUstream_st*) { return 98; });
  });
  EXPECT_THAT(query, IsErrorKind(ErrorKind::kDriver));
  EXPECT_EQ(GetErrorInfo(query)->code, 98);
  EXPECT_EQ(GetErrorInfo(query)->object, "scan");
  const absl::Status run = Run([](StepContext& context) {
    return WithLtWorkspace(context, "w", 1024, [](void*, std::size_t, CUstream_st*) { return 13; });
  });
  EXPECT_THAT(run, IsErrorKind(ErrorKind::kDriver));
  EXPECT_EQ(GetErrorInfo(run)->call, "cublasLtMatmul");
}

TEST_F(LibraryAdaptersTest, LtWorkspaceLastsForTheCallOnly) {
  const Step step = [&](StepContext& context) -> absl::Status {
    for (const char* name : {"first", "second"}) {
      HOLDFAST_RETURN_IF_ERROR(WithLtWorkspace(
          context, name, kLtWorkspaceBytes, [&](void* workspace, std::size_t bytes, CUstream_st*) {
            EXPECT_EQ(reinterpret_cast<std::uint64_t>(workspace), range_.base.value);
            EXPECT_EQ(bytes, kLtWorkspaceBytes);
            return 0;
          }));
    }
    return absl::OkStatus();
  };
  ASSERT_OK(Run(step));
  EXPECT_EQ(plan_.height, kLtWorkspaceBytes) << "two calls in turn share it";
}

#if HOLDFAST_WITH_CUDA
TEST_F(LibraryAdaptersTest, CubAndThrustRunInTheArena) {
  if (!device_->info().is_cuda) GTEST_SKIP() << "CUB and Thrust need a GPU";
  constexpr int kCount = 10000;
  const DeviceAddress in = arena_->range(data_).base, out = in + 256 * kKiB;
  std::vector<std::uint32_t> values(kCount);
  for (int i = 0; i < kCount; ++i) values[i] = static_cast<std::uint32_t>(i * 7919 % 1000);
  Upload(in, values);
  ASSERT_OK(Run([&](StepContext& step) -> absl::Status {
    HOLDFAST_RETURN_IF_ERROR(
        CubInclusiveSum(step, in.As<std::uint32_t>(), out.As<std::uint32_t>(), kCount));
    return ThrustSort(step, in.As<std::uint32_t>(), kCount, kMiB);
  }));
  std::vector<std::uint32_t> sums(kCount);
  std::partial_sum(values.begin(), values.end(), sums.begin());
  EXPECT_EQ(Download<std::uint32_t>(out, kCount), sums);
  std::sort(values.begin(), values.end());
  EXPECT_EQ(Download<std::uint32_t>(in, kCount), values);
}

TEST_F(LibraryAdaptersTest, ThrustThatWantsMoreThanItWasGivenIsRefused) {
  if (!device_->info().is_cuda) GTEST_SKIP() << "Thrust needs a GPU";
  const absl::Status refused = Run([&](StepContext& step) {
    return ThrustSort(step, arena_->range(data_).base.As<std::uint32_t>(), 10000, 256);
  });
  EXPECT_THAT(refused, IsErrorKind(ErrorKind::kOutOfExtent));
  EXPECT_EQ(GetErrorInfo(refused)->object, "sort");
}
#endif

}  // namespace
}  // namespace holdfast
