#include "tools/audit_run.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "device/error.h"

namespace holdfast {
namespace {

constexpr char kLibrary[] = "libholdfast_preload.so";

absl::Status Cannot(ErrorKind kind, const std::string& object, const std::string& what) {
  return MakeError({.kind = kind, .object = object}, what);
}

// Beside this binary, or in the lib folder beside its folder, as it is installed.
absl::StatusOr<std::string> FindLibrary() {
  std::error_code error;
  const auto folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (const auto& path : {folder / kLibrary, folder / ".." / "lib" / kLibrary}) {
    if (!error && std::filesystem::exists(path, error)) return path.lexically_normal().string();
  }
  return Cannot(ErrorKind::kNotFound, kLibrary,
                "not beside this program: builds without CUDA have none");
}

// The report's file while the program runs: the one asked for, or a temporary one.
class ReportFile {
 public:
  static absl::StatusOr<ReportFile> Reserve(const std::string& asked) {
    ReportFile file;
    file.path_ = asked;
    if (asked.empty()) {
      const char* const folder = std::getenv("TMPDIR");
      file.path_ = absl::StrCat(folder != nullptr ? folder : "/tmp", "/holdfast-audit-", getpid());
      file.temporary_ = true;
    }
    // Made once to see that it can be, and removed: the library makes it anew.
    const int made = open(file.path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (made < 0) {
      return Cannot(ErrorKind::kInvalidArgument, file.path_,
                    absl::StrCat("cannot be written: ", std::strerror(errno)));
    }
    close(made);
    unlink(file.path_.c_str());
    return file;
  }
  ReportFile(ReportFile&& other) noexcept
      : path_(std::move(other.path_)), temporary_(std::exchange(other.temporary_, false)) {}
  ~ReportFile() {
    if (temporary_) unlink(path_.c_str());
  }

  const std::string& path() const { return path_; }
  std::optional<nlohmann::json> Read() const {
    std::ifstream in(path_);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) return std::nullopt;
    return json;
  }

 private:
  ReportFile() = default;
  std::string path_;
  bool temporary_ = false;
};

absl::StatusOr<int> Run(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& argument : command) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int code =
      posix_spawnp(&child, arguments.front(), nullptr, nullptr, arguments.data(), environ);
  if (code != 0) {
    return Cannot(ErrorKind::kNotFound, command.front(),
                  absl::StrCat("cannot be started: ", std::strerror(code)));
  }
  // An interrupt from the terminal reaches the program too, and is its to answer.
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGQUIT, SIG_IGN);
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return Cannot(ErrorKind::kInternal, command.front(), "lost the program");
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

absl::StatusOr<AuditRunAnswer> AuditRun(const AuditRunOptions& options) {
  HOLDFAST_ASSIGN_OR_RETURN(const std::string library, FindLibrary());
  HOLDFAST_ASSIGN_OR_RETURN(const ReportFile report, ReportFile::Reserve(options.report));
  const char* const others = std::getenv("LD_PRELOAD");
  const bool alone = others == nullptr || *others == '\0';
  setenv("LD_PRELOAD", (alone ? library : absl::StrCat(library, ":", others)).c_str(), 1);
  setenv("HOLDFAST_PRELOAD_REPORT", report.path().c_str(), 1);
  if (options.fail) setenv("HOLDFAST_PRELOAD_FAIL", "1", 1);

  HOLDFAST_ASSIGN_OR_RETURN(const int status, Run(options.command));
  AuditRunAnswer answer{.status = status};
  const std::optional<nlohmann::json> found = report.Read();
  answer.text = found.has_value() && found->contains("text")
                    ? found->at("text").get<std::string>()
                    : absl::StrCat("holdfast: ", options.command.front(),
                                   " used no CUDA driver, was ended by force, or does not let a "
                                   "library in (setuid, static): nothing was audited\n");
  return answer;
}

}  // namespace holdfast
