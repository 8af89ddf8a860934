// A made-up / for ReadHostLimits, gone with the object.
#ifndef HOLDFAST_TESTS_DEVICE_LIMITS_ROOT_H_
#define HOLDFAST_TESTS_DEVICE_LIMITS_ROOT_H_

#include <stdlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "gtest/gtest.h"

namespace holdfast {

class LimitsRoot {
 public:
  LimitsRoot() {
    std::string name = testing::TempDir() + "/holdfast-limits.XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  ~LimitsRoot() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  LimitsRoot(const LimitsRoot&) = delete;
  LimitsRoot& operator=(const LimitsRoot&) = delete;

  const std::string& path() const { return path_; }

  void Write(const std::string& file, const std::string& text) const {
    const std::filesystem::path path = path_ + "/" + file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  // A machine of 1 TiB of which `kib` are available.
  void MachineAvailable(std::uint64_t kib) const {
    Write("proc/meminfo",
          "MemTotal: 1073741824 kB\nMemFree: 1 kB\nMemAvailable: " + std::to_string(kib) + " kB\n");
  }
  // The process is in cgroup `own` of version 2, of which the mount shows `shown`.
  void Version2(const std::string& own, const std::string& shown = "/") const {
    Write("proc/self/cgroup", "3:cpu:/elsewhere\n0::" + own + "\n");
    Write("proc/self/mountinfo", "23 1 0:5 / /proc rw - proc proc rw\n31 23 0:28 " + shown +
                                     " /sys/fs/cgroup rw,relatime shared:4 - cgroup2 none rw\n");
  }
  // The files of one cgroup; "" is the mount point.
  void Level2(const std::string& folder, const std::string& max, const std::string& current,
              const std::string& stat = "anon 1\nfile 2\ninactive_file 0\n") const {
    Write("sys/fs/cgroup" + folder + "/memory.max", max + "\n");
    Write("sys/fs/cgroup" + folder + "/memory.current", current + "\n");
    Write("sys/fs/cgroup" + folder + "/memory.stat", stat);
  }

 private:
  std::string path_;
};

}  // namespace holdfast

#endif  // HOLDFAST_TESTS_DEVICE_LIMITS_ROOT_H_
