// The KV cache's pages: sized when everything else is there, grown and shrunk in place later.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "device/bytes.h"
#include "runtime/engine.h"

namespace holdfast {
namespace {

absl::Status BadPages(ErrorKind kind, std::int64_t need, std::int64_t have,
                      const std::string& why) {
  return MakeError({.kind = kind,
                    .object = "KV cache",
                    .need = static_cast<std::uint64_t>(std::max<std::int64_t>(need, 0)),
                    .have = static_cast<std::uint64_t>(std::max<std::int64_t>(have, 0))},
                   why);
}

}  // namespace

Counting Engine::counting() const {
  return options_.plant_neighbours_bytes ? Counting::kDevice : Counting::kOwn;
}

KvBudget EngineOptions::kv_budget() const {
  if (!kv_amount.has_value()) return DeviceShare{utilization};
  return std::visit([](const auto& amount) -> KvBudget { return amount; }, *kv_amount);
}

void EngineOptions::set_kv_budget(const KvBudget& budget) {
  kv_amount.reset();
  if (const auto* share = std::get_if<DeviceShare>(&budget)) utilization = share->share;
  if (const auto* bytes = std::get_if<CacheBytes>(&budget)) kv_amount = *bytes;
  if (const auto* blocks = std::get_if<CacheBlocks>(&budget)) kv_amount = *blocks;
}

std::uint64_t Engine::cache_committed_bytes() const {
  // The cache is the only span of its group.
  return AlignUp(arena_->committed_bytes(cache_), device_.info().granularity);
}

absl::Status Engine::SizeCache() {
  HOLDFAST_ASSIGN_OR_RETURN(const MemorySnapshot now, TakeSnapshot(device_, counting()));
  HOLDFAST_RETURN_IF_ERROR(PlanMeasuredOrder(device_.info(), options_.kv_budget(), now,
                                             cache_committed_bytes(), kv_plan_));
  HOLDFAST_RETURN_IF_ERROR(CheckKvPlan(options_.kv_budget(), kv_plan_));
  const auto pages = static_cast<std::int32_t>(kv_plan_.measured.pages);
  HOLDFAST_RETURN_IF_ERROR(
      arena_->Commit(cache_, static_cast<std::uint64_t>(pages) * kv_plan_.page_bytes));
  kv_plan_.pages = pages;
  pages_.Grow(pages);
  return absl::OkStatus();
}

absl::StatusOr<CacheResize> Engine::ResizeCache(std::int32_t pages,
                                                std::chrono::milliseconds deadline) {
  std::lock_guard<std::mutex> alone(resize_mutex_);
  if (pages < kv_plan_.needed_pages) {
    return BadPages(ErrorKind::kInvalidArgument, kv_plan_.needed_pages, pages,
                    "fewer pages than one longest sequence and the null page need");
  }
  if (pages > kv_plan_.most_pages) {
    return BadPages(ErrorKind::kOutOfExtent, pages, kv_plan_.most_pages,
                    "more pages than the cache's addresses were reserved for");
  }
  if (arena_->asleep(kCacheTag)) {
    return MakeError({.kind = ErrorKind::kAsleep, .object = kCacheTag},
                     "no pages are added or taken while it sleeps");
  }
  CacheResize done{.pages_before = kv_plan_.pages};
  const std::uint64_t before = cache_committed_bytes();
  if (pages > kv_plan_.pages) HOLDFAST_RETURN_IF_ERROR(GrowCache(pages));
  if (pages < kv_plan_.pages) HOLDFAST_RETURN_IF_ERROR(ShrinkCache(pages, deadline));
  done.pages = kv_plan_.pages;
  done.committed_bytes = cache_committed_bytes();
  if (done.committed_bytes > before) done.taken_bytes = done.committed_bytes - before;
  if (done.committed_bytes < before) done.given_back_bytes = before - done.committed_bytes;
  return done;
}

absl::Status Engine::GrowCache(std::int32_t pages) {
  // The user's count was for the start; this is another.
  KvBudget allowed = options_.kv_budget();
  if (std::holds_alternative<CacheBlocks>(allowed)) allowed = CacheBlocks{pages};
  HOLDFAST_ASSIGN_OR_RETURN(const MemorySnapshot now, TakeSnapshot(device_, counting()));
  KvPlan grown = kv_plan_;
  HOLDFAST_RETURN_IF_ERROR(
      PlanMeasuredOrder(device_.info(), allowed, now, cache_committed_bytes(), grown));
  if (grown.measured.pages < pages) {
    return BadPages(
        ErrorKind::kOutOfMemory, pages, grown.measured.pages,
        absl::StrCat(KvBudgetText(options_.kv_budget()), ": the budget and the device leave room ",
                     "for ", grown.measured.pages, " pages"));
  }
  HOLDFAST_RETURN_IF_ERROR(
      arena_->Commit(cache_, static_cast<std::uint64_t>(pages) * kv_plan_.page_bytes));
  grown.pages = pages;
  kv_plan_ = grown;
  pages_.Grow(pages);
  return absl::OkStatus();
}

absl::Status Engine::ShrinkCache(std::int32_t pages, std::chrono::milliseconds deadline) {
  // First nobody can get the pages any more, then they go.
  HOLDFAST_RETURN_IF_ERROR(pages_.Shrink(pages));
  const std::uint64_t before = cache_committed_bytes();
  const absl::Status cut =
      arena_
          ->Uncommit(cache_, static_cast<std::uint64_t>(pages) * kv_plan_.page_bytes,
                     std::chrono::steady_clock::now() + deadline)
          .status();
  if (!cut.ok() && cache_committed_bytes() == before) {
    pages_.Grow(kv_plan_.pages);
    return cut;
  }
  // Cut, even where the driver kept some of the pages: the arena gives those back later.
  kv_plan_.pages = pages;
  return cut;
}

}  // namespace holdfast
