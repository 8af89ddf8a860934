// One line on a terminal that says what is going on. Silent when stderr is not a terminal.
#ifndef HOLDFAST_TOOLS_PROGRESS_H_
#define HOLDFAST_TOOLS_PROGRESS_H_

#include <cstdint>
#include <string>

namespace holdfast {

// Replaces the line. At most ten times a second for fractions; always for a new stage.
void ShowStage(const std::string& stage);
void ShowFraction(std::uint64_t done, std::uint64_t total);
// Takes the line away: before real output.
void ClearProgress();

}  // namespace holdfast

#endif  // HOLDFAST_TOOLS_PROGRESS_H_
