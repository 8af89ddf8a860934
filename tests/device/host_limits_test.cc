// Verifies what is read of the machine's memory and of cgroups, version 2 and 1, at every level.
#include "device/host_limits.h"

#include "device/bytes.h"
#include "gtest/gtest.h"
#include "tests/device/limits_root.h"

namespace holdfast {
namespace {

class HostLimitsTest : public testing::Test, protected LimitsRoot {
 protected:
  HostLimits Read() const { return ReadHostLimits(path()); }
};

TEST_F(HostLimitsTest, NothingThereLimitsNothing) {
  const HostLimits limits = Read();
  EXPECT_EQ(limits.machine_available_bytes, HostLimits::kNoLimit);
  EXPECT_EQ(limits.cgroup_available_bytes, HostLimits::kNoLimit);
  EXPECT_EQ(limits.available_bytes(), HostLimits::kNoLimit);
}

TEST_F(HostLimitsTest, TheMachineGivesWhatIsAvailableNeverItsTotal) {
  MachineAvailable(500);
  EXPECT_EQ(Read().machine_available_bytes, 500 * kKiB);
  EXPECT_STREQ(Read().binding(), "machine");
  Write("proc/meminfo", "MemTotal: 1000 kB\nMemFree: 100 kB\nCached: 7 kB\n");
  EXPECT_EQ(Read().machine_available_bytes, 100 * kKiB) << "free, where available is not said";
  Write("proc/meminfo", "MemTotal: 1000 kB\n");
  EXPECT_EQ(Read().machine_available_bytes, HostLimits::kNoLimit);
}

TEST_F(HostLimitsTest, Version2TakesTheLeastOfAllLevels) {
  Version2("/a/b/c");
  Level2("", "max", "1");
  Level2("/a", "10000", "4000");
  Level2("/a/b", "max", "4000");
  Level2("/a/b/c", "9000", "2000");
  EXPECT_EQ(Read().cgroup_available_bytes, 6000u);
  // Negative control for each level: it binds when it is the least.
  Level2("/a/b/c", "9000", "3500");
  EXPECT_EQ(Read().cgroup_available_bytes, 5500u);
  Level2("/a/b", "4100", "4000");
  EXPECT_EQ(Read().cgroup_available_bytes, 100u);
  Level2("", "77", "0");
  EXPECT_EQ(Read().cgroup_available_bytes, 77u);
  EXPECT_STREQ(Read().binding(), "cgroup memory limit");
  // A sibling says nothing.
  Level2("/a/x", "1", "1");
  EXPECT_EQ(Read().cgroup_available_bytes, 77u);
}

TEST_F(HostLimitsTest, FilePagesTheKernelWouldDropAreRoom) {
  Version2("/a");
  Level2("/a", "10000", "9000", "anon 2000\ninactive_file 5000\nactive_file 2000\n");
  EXPECT_EQ(Read().cgroup_available_bytes, 6000u);
  Level2("/a", "10000", "4000", "inactive_file 5000\n");
  EXPECT_EQ(Read().cgroup_available_bytes, 10000u) << "never more than the limit";
  Level2("/a", "10000", "12000", "inactive_file 1000\n");
  EXPECT_EQ(Read().cgroup_available_bytes, 0u) << "over the limit already";
}

TEST_F(HostLimitsTest, AMountThatShowsOnlyAPartIsFollowed) {
  Version2("/docker/x/inner", "/docker/x");
  Level2("", "5000", "1000");
  Level2("/inner", "3000", "1000");
  EXPECT_EQ(Read().cgroup_available_bytes, 2000u);
  // A path outside of what is shown: the mount point itself counts.
  Version2("/other", "/docker/x");
  EXPECT_EQ(Read().cgroup_available_bytes, 4000u);
  Version2("/../up");
  EXPECT_EQ(Read().cgroup_available_bytes, 4000u);
}

TEST_F(HostLimitsTest, Version1TakesTheLeastOfAllLevels) {
  Write("proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/job/task\n0::/\n");
  Write("proc/self/mountinfo",
        "35 31 0:32 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
        "36 31 0:33 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  const std::string base = "sys/fs/cgroup/memory";
  Write(base + "/memory.limit_in_bytes", "9223372036854771712\n");
  Write(base + "/job/memory.limit_in_bytes", "8000\n");
  Write(base + "/job/memory.usage_in_bytes", "7000\n");
  Write(base + "/job/memory.stat", "inactive_file 1\ntotal_inactive_file 500\n");
  Write(base + "/job/task/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(Read().cgroup_available_bytes, 1500u);
  Write(base + "/job/task/memory.limit_in_bytes", "100\n");
  EXPECT_EQ(Read().cgroup_available_bytes, 100u) << "no usage said: all of it";
}

TEST_F(HostLimitsTest, GarbageLimitsNothingAndHarmsNothing) {
  Write("proc/meminfo", "MemFree: 100 kB\nMemAvailable: many kB\n\nMemFree\n");
  EXPECT_EQ(Read().machine_available_bytes, 100 * kKiB);
  Version2("/a");
  for (const char* text : {"", "none", "-5", "12x", "99999999999999999999999", "0x10"}) {
    Level2("/a", text, "0");
    EXPECT_EQ(Read().cgroup_available_bytes, HostLimits::kNoLimit) << text;
  }
  Level2("/a", "1000", "junk", "inactive_file\n\n: :\n");
  EXPECT_EQ(Read().cgroup_available_bytes, 1000u);
  Write("proc/self/cgroup", "::::\n\nnothing\n0:");
  Write("proc/self/mountinfo", " - \n1 2 3\n - cgroup2\n");
  EXPECT_EQ(Read().cgroup_available_bytes, HostLimits::kNoLimit);
}

TEST(HostLimitsOfThisMachine, SomethingIsAvailable) {
  EXPECT_GT(ReadHostLimits().available_bytes(), 16 * kMiB);
}

}  // namespace
}  // namespace holdfast
