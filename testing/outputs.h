// What a program puts out, as bits, and where two runs differ first.
#ifndef HOLDFAST_TESTING_OUTPUTS_H_
#define HOLDFAST_TESTING_OUTPUTS_H_

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::testing {

// Bytes by name ("decode/4.logits"): compared bit for bit, never as numbers.
using Outputs = std::map<std::string, std::vector<std::byte>>;

// The first difference, as "decode/4.logits: byte 12 is 0x3f, was 0x3e (3 of 256 bytes differ)"; a
// missing, new or differently long output counts. nullopt: the same bits.
std::optional<std::string> FirstDifference(const Outputs& golden, const Outputs& now);

}  // namespace holdfast::testing

#endif  // HOLDFAST_TESTING_OUTPUTS_H_
