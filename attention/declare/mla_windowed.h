// Latent attention over a window and, in some layers, compressed keys of the whole context (the
// DeepSeek-V4 kind): one softmax over both caches. Rows are 512 wide, their rotated part included.
#ifndef HOLDFAST_ATTENTION_DECLARE_MLA_WINDOWED_H_
#define HOLDFAST_ATTENTION_DECLARE_MLA_WINDOWED_H_

#include "absl/status/statusor.h"
#include "attention/declaration.h"

namespace holdfast {

inline constexpr AttentionPath kWindowOnly("window", [](const AttentionConfig& config) {
  return config.compress_ratio <= 1;
});
inline constexpr AttentionPath kWindowAndCompressed("window_and_compressed",
                                                    [](const AttentionConfig& config) {
                                                      return config.compress_ratio > 1;
                                                    });

// page_tokens of compressed layers must be a multiple of compress_ratio.
absl::StatusOr<AttentionDeclaration> DeclareMlaWindowed(const AttentionConfig& config);

}  // namespace holdfast

#endif  // HOLDFAST_ATTENTION_DECLARE_MLA_WINDOWED_H_
