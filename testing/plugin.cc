#include "testing/plugin.h"

#include <dlfcn.h>
#include <elf.h>

#include <array>
#include <cstring>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "device/error.h"

namespace holdfast::testing {
namespace {

// The dynamic linker maps what the program headers say and dies of SIGBUS where the file ends
// before that: so the file's length is compared with them first.
absl::Status CheckElf(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return MakeError({.kind = ErrorKind::kNotFound, .object = path}, "no such file");
  const std::streamoff end = file.tellg();
  const auto size = end < 0 ? 0 : static_cast<std::uint64_t>(end);
  const auto refuse = [&](const std::string& why) {
    return MakeError({.kind = ErrorKind::kCorrupted, .object = path}, why);
  };
  Elf64_Ehdr header = {};
  file.seekg(0);
  if (end < 0 || !file.read(reinterpret_cast<char*>(&header), sizeof(header)) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    return refuse("not an ELF file");
  }
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64 ||
      header.e_type != ET_DYN || header.e_phentsize != sizeof(Elf64_Phdr)) {
    return refuse("not a shared object for x86-64");
  }
  if (header.e_phoff > size || header.e_phnum * sizeof(Elf64_Phdr) > size - header.e_phoff) {
    return refuse("truncated: it ends before its program headers do");
  }
  file.seekg(static_cast<std::streamoff>(header.e_phoff));
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment = {};
    if (!file.read(reinterpret_cast<char*>(&segment), sizeof(segment))) {
      return refuse("truncated: it ends before its program headers do");
    }
    if (segment.p_offset > size || segment.p_filesz > size - segment.p_offset) {
      return MakeError({.kind = ErrorKind::kCorrupted,
                        .object = path,
                        .need = segment.p_offset + segment.p_filesz,
                        .have = size},
                       "truncated: it ends before its segments do");
    }
  }
  // Relocations and symbols lie in segments, the section table does not; a linker writes it last.
  if (header.e_shoff > size || header.e_shnum * sizeof(Elf64_Shdr) > size - header.e_shoff) {
    return refuse("truncated: it ends before its section table does");
  }
  return absl::OkStatus();
}

}  // namespace

Plugin::~Plugin() {
  // A captured kernel's code must outlive every graph of the process, and a GPU's driver keeps
  // handles of it: what was loaded stays.
}

absl::StatusOr<std::shared_ptr<const Plugin>> Plugin::Load(const std::string& path) {
  const std::shared_ptr<Plugin> plugin(new Plugin());
  HOLDFAST_RETURN_IF_ERROR(plugin->Open(path));
  return std::shared_ptr<const Plugin>(plugin);
}

absl::Status Plugin::Open(const std::string& path) {
  HOLDFAST_RETURN_IF_ERROR(CheckElf(path));
  // With a slash the linker takes the file itself and searches nothing.
  const std::string place = path.find('/') == std::string::npos ? "./" + path : path;
  library_ = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) {
    const char* const why = dlerror();
    return MakeError({.kind = ErrorKind::kCorrupted, .object = path, .call = "dlopen"},
                     why != nullptr ? why : "it cannot be loaded");
  }
  void* const symbol = dlsym(library_, HOLDFAST_PLUGIN_SYMBOL);
  if (symbol == nullptr) {
    return MakeError({.kind = ErrorKind::kUnsupported, .object = path, .call = "dlsym"},
                     absl::StrCat("it has no symbol ", HOLDFAST_PLUGIN_SYMBOL));
  }
  return ReadTable(path, reinterpret_cast<holdfast_plugin_entry>(symbol)());
}

}  // namespace holdfast::testing
