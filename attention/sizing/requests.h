// Builds a list of requests out of products that are checked to fit 64 bits.
#ifndef HOLDFAST_ATTENTION_SIZING_REQUESTS_H_
#define HOLDFAST_ATTENTION_SIZING_REQUESTS_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "attention/declaration.h"

namespace holdfast {

// The product of `factors` (none negative). kInvalidArgument with object = `name` and the whole
// product in the message if it does not fit 64 bits.
absl::StatusOr<std::uint64_t> Product(const std::string& name,
                                      std::initializer_list<std::int64_t> factors);

// Rounded up; a >= 0, b > 0.
constexpr std::int64_t CeilDiv(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0); }
constexpr std::int64_t RoundUp(std::int64_t a, std::int64_t b) { return CeilDiv(a, b) * b; }

inline constexpr std::int64_t kF32Bytes = 4, kI32Bytes = 4, kBF16Bytes = 2;

class RequestList {
 public:
  // Adds the product of `factors`, in bytes. A request of no bytes is left out.
  RequestList& Add(const std::string& name, std::initializer_list<std::int64_t> factors,
                   const std::string& why);
  // Adds requests sized elsewhere, or keeps their error.
  RequestList& Add(const absl::StatusOr<std::vector<DeclaredRequest>>& requests);

  // What was added, in that order; or the first product that did not fit, or their sum.
  absl::StatusOr<std::vector<DeclaredRequest>> Take();

 private:
  absl::Status status_;
  std::vector<DeclaredRequest> requests_;
};

}  // namespace holdfast

#endif  // HOLDFAST_ATTENTION_SIZING_REQUESTS_H_
