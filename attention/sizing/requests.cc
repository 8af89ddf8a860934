#include "attention/sizing/requests.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "device/bytes.h"
#include "device/error.h"

namespace holdfast {

absl::StatusOr<std::uint64_t> Product(const std::string& name,
                                      std::initializer_list<std::int64_t> factors) {
  const auto refuse = [&](const char* why) {
    return MakeError({.kind = ErrorKind::kInvalidArgument, .object = name},
                     absl::StrCat(absl::StrJoin(factors, " * "), why));
  };
  std::uint64_t product = 1;
  bool fits = true, zero = false;
  for (const std::int64_t factor : factors) {
    if (factor < 0) return refuse(" has a negative factor");
    zero = zero || factor == 0;
    fits = fits && !__builtin_mul_overflow(product, static_cast<std::uint64_t>(factor), &product);
  }
  if (zero) return 0;
  if (!fits) return refuse(" does not fit 64 bits");
  return product;
}

absl::StatusOr<std::uint64_t> TotalBytes(const std::vector<DeclaredRequest>& requests) {
  std::uint64_t total = 0;
  for (const DeclaredRequest& request : requests) {
    HOLDFAST_ASSIGN_OR_RETURN(total, CheckedAdd(total, request.bytes, request.name));
  }
  return total;
}

RequestList& RequestList::Add(const std::string& name, std::initializer_list<std::int64_t> factors,
                              const std::string& why) {
  const absl::StatusOr<std::uint64_t> bytes = Product(name, factors);
  if (!bytes.ok()) {
    status_.Update(bytes.status());
  } else if (*bytes > 0) {
    requests_.push_back({.name = name, .bytes = *bytes, .why = why});
  }
  return *this;
}

RequestList& RequestList::Add(const absl::StatusOr<std::vector<DeclaredRequest>>& requests) {
  if (requests.ok()) {
    requests_.insert(requests_.end(), requests->begin(), requests->end());
  } else {
    status_.Update(requests.status());
  }
  return *this;
}

absl::StatusOr<std::vector<DeclaredRequest>> RequestList::Take() {
  HOLDFAST_RETURN_IF_ERROR(status_);
  HOLDFAST_RETURN_IF_ERROR(TotalBytes(requests_).status());
  return std::move(requests_);
}

}  // namespace holdfast
