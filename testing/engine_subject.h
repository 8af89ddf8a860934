// An engine as a subject: a model folder, generating text from prompts made up from a seed.
#ifndef HOLDFAST_TESTING_ENGINE_SUBJECT_H_
#define HOLDFAST_TESTING_ENGINE_SUBJECT_H_

#include <memory>
#include <string>
#include <vector>

#include "device/dtype.h"
#include "runtime/engine.h"
#include "testing/subject.h"

namespace holdfast::testing {

struct EngineSubjectOptions {
  std::string model;           // a folder
  std::string dtype = "auto";  // auto (bf16 on a GPU, else f32), f32, bf16
  // Small, so that making one for each negative control takes little: two buckets of each phase.
  EngineOptions engine = {.max_batch = 2,
                          .max_prefill_tokens = 16,
                          .max_sequence = 32,
                          .decode_buckets = {1, 2},
                          .prefill_buckets = {8, 16},
                          .chunk_bytes = 4 * kMiB,
                          .residency = {},
                          .on_stage = {}};
};

class EngineSubject : public Subject {
 public:
  // The factory of such subjects. Plants stale pointers; other faults of the subject are
  // kUnsupported. Making one fails as MlaModel::Open and Engine::Create do.
  static SubjectFactory Factory(EngineSubjectOptions options);
  // kInvalidArgument for a dtype of another name.
  static absl::StatusOr<DType> TypeOf(const std::string& dtype, bool is_cuda);

  std::string name() const override { return name_; }
  Arena& arena() override { return engine_->arena(); }
  Residency& residency() override { return engine_->residency(); }
  Lane& lane() override { return engine_->lane(); }
  GraphSet& graphs() override { return engine_->graphs(); }
  SpanId workspace() override { return engine_->workspace(); }

  // Tokens, and the hashes of the logits they were drawn from. It runs no step eagerly, and makes
  // its pads itself: kUnsupported.
  absl::StatusOr<Outputs> Run(const RunRequest& request) override;
  absl::Status Enqueue() override;
  absl::StatusOr<TransitionReport> Sleep(const std::vector<std::string>& tags,
                                         Residency::Deadline deadline) override;
  absl::StatusOr<TransitionReport> Wake(const std::vector<std::string>& tags) override {
    return engine_->Wake(tags);
  }
  absl::StatusOr<LedgerReport> Memory() override { return engine_->Memory(); }

 private:
  EngineSubject(std::string name, std::unique_ptr<Engine> engine)
      : name_(std::move(name)), engine_(std::move(engine)) {}

  std::string name_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace holdfast::testing

#endif  // HOLDFAST_TESTING_ENGINE_SUBJECT_H_
