#include "allocator/holders.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "device/error.h"

namespace holdfast {
namespace {

std::vector<CalledHolder> HoldersOf(const Transition& t, const std::vector<std::size_t>& groups) {
  std::vector<CalledHolder> holders;
  for (RegisteredHolder& holder : t.arena().registrations().all()) {
    const auto registration = std::make_shared<const Registration>(std::move(holder.registration));
    for (const SpanId span : registration->spans) {
      const DeviceAddress base = t.arena().range(span).base;
      const bool moves = std::any_of(groups.begin(), groups.end(), [&](std::size_t g) {
        return t.group(g).extent.Contains(base);
      });
      if (moves) holders.push_back({registration, span});
    }
  }
  return holders;
}

std::string Named(const Registration& registration) {
  return absl::StrCat(HolderKindName(registration.kind), " '", registration.holder, "'");
}

absl::Status CallBefore(const Transition& t, const CalledHolder& holder) {
  if (holder.registration->before_unmap == nullptr) return absl::OkStatus();
  const SpanInfo span = t.arena().span(holder.span);
  return Annotate(holder.registration->before_unmap(span),
                  absl::StrCat(Named(*holder.registration), " letting go of ", span.spec.name));
}

absl::Status CallAfter(const Transition& t, const CalledHolder& holder) {
  if (holder.registration->after_map == nullptr) return absl::OkStatus();
  const SpanInfo span = t.arena().span(holder.span);
  return Annotate(holder.registration->after_map(span),
                  absl::StrCat(Named(*holder.registration), " taking hold of ", span.spec.name));
}

}  // namespace

absl::Status CheckHolders(const Transition& t) {
  if (t.faults.skip_holders) return absl::OkStatus();
  for (const CalledHolder& holder : HoldersOf(t, t.groups)) {
    if (holder.registration->before_unmap != nullptr) continue;
    return MakeError(
        {.kind = ErrorKind::kHeld, .object = holder.registration->holder},
        absl::StrCat(Named(*holder.registration), " refers to the pages of span ",
                     t.arena().span(holder.span).spec.name, " and has no hooks to let go"));
  }
  return absl::OkStatus();
}

absl::Status LetGo(Transition& t) {
  if (t.faults.skip_holders) return absl::OkStatus();
  for (CalledHolder& holder : HoldersOf(t, t.groups)) {
    if (absl::Status called = CallBefore(t, holder); !called.ok()) {
      UndoLetGo(t).IgnoreError();  // the first failure is what the caller hears of
      return called;
    }
    t.called.push_back(std::move(holder));
  }
  return absl::OkStatus();
}

absl::Status UndoLetGo(Transition& t) {
  absl::Status first;
  while (!t.called.empty()) {
    first.Update(CallAfter(t, t.called.back()));
    t.called.pop_back();
  }
  return first;
}

absl::Status TakeHold(Transition& t, const std::vector<std::size_t>& groups) {
  if (t.faults.skip_holders) return absl::OkStatus();
  std::vector<CalledHolder> holders = HoldersOf(t, groups);
  for (auto holder = holders.rbegin(); holder != holders.rend(); ++holder) {
    HOLDFAST_RETURN_IF_ERROR(CallAfter(t, *holder));
    t.called.push_back(std::move(*holder));
  }
  return absl::OkStatus();
}

void UndoTakeHold(Transition& t) {
  while (!t.called.empty()) {
    CallBefore(t, t.called.back()).IgnoreError();
    t.called.pop_back();
  }
}

}  // namespace holdfast
