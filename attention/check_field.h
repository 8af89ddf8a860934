// Refusals of configurations outside a backend's range, in one wording.
#ifndef HOLDFAST_ATTENTION_CHECK_FIELD_H_
#define HOLDFAST_ATTENTION_CHECK_FIELD_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace holdfast {

// The most of anything that is counted (tokens, sequences, heads): far above any machine, and small
// enough that sums of a few counts cannot wrap.
inline constexpr std::int64_t kMostCount = std::int64_t{1} << 40;

// kInvalidArgument with object "<owner> <field>": "<field> is <value>; must be <limit>".
absl::Status RefuseField(const std::string& owner, const std::string& field,
                         const std::string& value, const std::string& limit);

// OK if least <= value <= most; else refuses. `most` of INT64_MAX is no limit.
absl::Status CheckField(const std::string& owner, const std::string& field, std::int64_t value,
                        std::int64_t least, std::int64_t most);

}  // namespace holdfast

#endif  // HOLDFAST_ATTENTION_CHECK_FIELD_H_
