// What a plug-in says of itself, checked before any of it is used.
#include <bit>
#include <cctype>
#include <cstring>
#include <limits>
#include <set>

#include "absl/strings/str_cat.h"
#include "device/bytes.h"
#include "device/error.h"
#include "testing/plugin.h"

namespace holdfast::testing {
namespace {

constexpr std::size_t kLongestName = 255;
constexpr std::uint32_t kMostEntries = 4096;
constexpr std::uint64_t kLargestAlignment = 64 * kKiB;
constexpr std::uint64_t kLargestSpan = std::uint64_t{1} << 42;
constexpr std::uint32_t kKnownFlags = HOLDFAST_PLUGIN_INPUT | HOLDFAST_PLUGIN_CONTAINS_POINTERS;

absl::Status Lie(const std::string& object, const std::string& what) {
  return MakeError({.kind = ErrorKind::kInvalidArgument, .object = object}, what);
}

absl::Status LieAboutSize(const std::string& object, const std::string& what, std::uint64_t need,
                          std::uint64_t have) {
  return MakeError(
      {.kind = ErrorKind::kInvalidArgument, .object = object, .need = need, .have = have}, what);
}

// `what`: "the name of span 3".
absl::StatusOr<std::string> ReadName(const std::string& object, const std::string& what,
                                     const char* name) {
  if (name == nullptr) return Lie(object, what + " is null");
  const std::size_t length = strnlen(name, kLongestName + 1);
  if (length == 0) return Lie(object, what + " is empty");
  if (length > kLongestName) return Lie(object, absl::StrCat(what, " is longer than 255 bytes"));
  for (std::size_t i = 0; i < length; ++i) {
    if (std::isprint(static_cast<unsigned char>(name[i])) == 0) {
      return Lie(object, what + " holds what is no printable character");
    }
  }
  return std::string(name, length);
}

absl::Status CheckCount(const std::string& object, const char* what, const void* entries,
                        std::uint32_t count) {
  if (count == 0) return Lie(object, absl::StrCat("it has no ", what));
  if (count > kMostEntries) {
    return LieAboutSize(object, absl::StrCat("it has too many ", what), count, kMostEntries);
  }
  if (entries == nullptr) {
    return Lie(object,
               absl::StrCat("it says it has ", count, " ", what, ", and the table is null"));
  }
  return absl::OkStatus();
}

absl::Status CheckWake(const std::string& object, const std::string& span,
                       const holdfast_plugin_span& said) {
  const bool kept = said.role == HOLDFAST_PLUGIN_IMMUTABLE || said.role == HOLDFAST_PLUGIN_MUTABLE;
  if (said.role > HOLDFAST_PLUGIN_SCRATCH) {
    return Lie(object, absl::StrCat(span, ": no such role: ", said.role));
  }
  if (said.wake > HOLDFAST_PLUGIN_REFILL) {
    return Lie(object, absl::StrCat(span, ": no such wake: ", said.wake));
  }
  if (said.wake == HOLDFAST_PLUGIN_UNDEFINED && kept) {
    return Lie(object, span + ": kept contents do not come back undefined");
  }
  if (said.wake == HOLDFAST_PLUGIN_REFILL && !kept) {
    return Lie(object, span + ": cache and scratch are not refilled");
  }
  if ((said.flags & ~kKnownFlags) != 0 || said.reserved != 0) {
    return Lie(object, absl::StrCat(span, ": flags or reserved hold unknown bits"));
  }
  if ((said.flags & HOLDFAST_PLUGIN_INPUT) != 0 && said.role == HOLDFAST_PLUGIN_IMMUTABLE) {
    return Lie(object, span + ": an immutable span cannot be an input");
  }
  return absl::OkStatus();
}

WakeContents ContentsOf(std::uint32_t wake) {
  if (wake == HOLDFAST_PLUGIN_POISON) return WakeContents::kPoison;
  if (wake == HOLDFAST_PLUGIN_UNDEFINED) return WakeContents::kUndefined;
  return WakeContents::kZero;
}

}  // namespace

absl::Status Plugin::ReadTable(const std::string& path, const holdfast_plugin* table) {
  if (table == nullptr) return Lie(path, absl::StrCat(HOLDFAST_PLUGIN_SYMBOL, " returned null"));
  if (table->version != HOLDFAST_PLUGIN_VERSION) {
    return MakeError({.kind = ErrorKind::kUnsupported,
                      .object = path,
                      .need = HOLDFAST_PLUGIN_VERSION,
                      .have = table->version},
                     "it is of another version of the plug-in interface");
  }
  const struct {
    const char* what;
    std::uint64_t need, have;
  } sizes[] = {{"struct_bytes", sizeof(holdfast_plugin), table->struct_bytes},
               {"span_bytes", sizeof(holdfast_plugin_span), table->span_bytes},
               {"step_bytes", sizeof(holdfast_plugin_step), table->step_bytes},
               {"output_bytes", sizeof(holdfast_plugin_output), table->output_bytes},
               {"context_bytes", sizeof(holdfast_plugin_context), table->context_bytes}};
  for (const auto& size : sizes) {
    if (size.have != size.need) {
      return LieAboutSize(path, absl::StrCat(size.what, " is not the size this version has"),
                          size.need, size.have);
    }
  }
  table_ = *table;
  HOLDFAST_ASSIGN_OR_RETURN(name_, ReadName(path, "its name", table_.name));
  if (table_.enqueue == nullptr) return Lie(path, "enqueue is null");
  if (table_.reserved != 0) return Lie(path, "reserved is not 0");
  HOLDFAST_RETURN_IF_ERROR(CheckCount(path, "spans", table_.spans, table_.span_count));
  HOLDFAST_RETURN_IF_ERROR(CheckCount(path, "steps", table_.steps, table_.step_count));
  HOLDFAST_RETURN_IF_ERROR(CheckCount(path, "outputs", table_.outputs, table_.output_count));
  HOLDFAST_RETURN_IF_ERROR(ReadSpans());
  HOLDFAST_RETURN_IF_ERROR(ReadSteps());
  return ReadOutputs();
}

absl::Status Plugin::ReadSpans() {
  std::set<std::string> names;
  for (std::uint32_t i = 0; i < table_.span_count; ++i) {
    const holdfast_plugin_span said = table_.spans[i];
    HOLDFAST_ASSIGN_OR_RETURN(const std::string name,
                              ReadName(name_, absl::StrCat("the name of span ", i), said.name));
    const std::string span = "span " + name;
    HOLDFAST_ASSIGN_OR_RETURN(const std::string tag,
                              ReadName(name_, "the tag of " + span, said.tag));
    if (!names.insert(name).second) return Lie(name_, span + " is declared twice");
    HOLDFAST_RETURN_IF_ERROR(CheckWake(name_, span, said));
    if (said.bytes == 0) return Lie(name_, span + " has no bytes");
    if (said.bytes > kLargestSpan) {
      return LieAboutSize(name_, span + " is larger than any device", said.bytes, kLargestSpan);
    }
    const std::uint64_t alignment = said.alignment == 0 ? 256 : said.alignment;
    if (!std::has_single_bit(alignment) || alignment > kLargestAlignment) {
      return LieAboutSize(name_, span + ": its alignment is no power of two up to 64 KiB",
                          said.alignment, kLargestAlignment);
    }
    const bool input = (said.flags & HOLDFAST_PLUGIN_INPUT) != 0;
    const bool refilled = said.wake == HOLDFAST_PLUGIN_REFILL;
    const bool undefined = said.wake == HOLDFAST_PLUGIN_UNDEFINED;
    if ((input || refilled || undefined) && table_.contents == nullptr) {
      return Lie(name_, span + " needs contents(), which is null");
    }
    spans_.push_back(
        {.spec = {.name = name,
                  .tag = tag,
                  .role = static_cast<Role>(said.role),
                  .bytes = said.bytes,
                  .alignment = alignment,
                  .owner = name_,
                  .wake_contents = ContentsOf(said.wake),
                  .refill = {},
                  .contains_pointers = (said.flags & HOLDFAST_PLUGIN_CONTAINS_POINTERS) != 0},
         .input = input,
         .refilled = refilled,
         .undefined = undefined});
  }
  return absl::OkStatus();
}

absl::Status Plugin::ReadSteps() {
  std::set<std::string> names;
  std::set<int> sizes;
  for (std::uint32_t i = 0; i < table_.step_count; ++i) {
    const holdfast_plugin_step said = table_.steps[i];
    HOLDFAST_ASSIGN_OR_RETURN(const std::string name,
                              ReadName(name_, absl::StrCat("the name of step ", i), said.name));
    if (!names.insert(name).second) return Lie(name_, "step " + name + " is declared twice");
    if (said.size < 1 || said.size > (1 << 20)) {
      return Lie(name_, absl::StrCat("step ", name, " has the size ", said.size,
                                     ", which is not from 1 to 1048576"));
    }
    if (!sizes.insert(said.size).second) {
      return Lie(name_, absl::StrCat("two steps have the size ", said.size));
    }
    if (said.reserved != 0) return Lie(name_, "step " + name + ": reserved is not 0");
    steps_.push_back({.name = name, .size = said.size, .outputs = {}});
  }
  return absl::OkStatus();
}

absl::Status Plugin::ReadOutputs() {
  std::set<std::string> names;
  for (std::uint32_t i = 0; i < table_.output_count; ++i) {
    const holdfast_plugin_output said = table_.outputs[i];
    HOLDFAST_ASSIGN_OR_RETURN(const std::string own,
                              ReadName(name_, absl::StrCat("the name of output ", i), said.name));
    if (said.step >= steps_.size()) {
      return LieAboutSize(name_, "output " + own + " is of a step that is not there", said.step,
                          steps_.size());
    }
    if (said.span >= spans_.size()) {
      return LieAboutSize(name_, "output " + own + " lies in a span that is not there", said.span,
                          spans_.size());
    }
    const std::string name = steps_[said.step].name + "." + own;
    if (!names.insert(name).second) return Lie(name_, "output " + name + " is declared twice");
    const SpanSpec& span = spans_[said.span].spec;
    if (said.bytes == 0 || said.offset > span.bytes || said.bytes > span.bytes - said.offset) {
      return LieAboutSize(name_,
                          absl::StrCat("output ", name, " (", said.bytes, " B at ", said.offset,
                                       ") lies outside span ", span.name),
                          said.bytes, span.bytes);
    }
    steps_[said.step].outputs.push_back(
        {.name = name, .span = said.span, .offset = said.offset, .bytes = said.bytes});
  }
  for (const PluginStep& step : steps_) {
    if (step.outputs.empty()) return Lie(name_, "step " + step.name + " has no output");
  }
  return absl::OkStatus();
}

}  // namespace holdfast::testing
