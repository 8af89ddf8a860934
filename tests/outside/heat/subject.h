// The heat program as the kit sees it: all that somebody writes who wants the proofs.
#ifndef HOLDFAST_TESTS_OUTSIDE_HEAT_SUBJECT_H_
#define HOLDFAST_TESTS_OUTSIDE_HEAT_SUBJECT_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "heat/rods.h"
#include "holdfast/testing/subject.h"

namespace heat {

using Fault = holdfast::testing::Fault;

// The kit's name for a mistake of ours; kNone for what we cannot plant or need not.
inline Mistake MistakeOf(Fault fault) {
  switch (fault) {
    case Fault::kStalePointer: return Mistake::kStalePointer;
    case Fault::kUnsteadyStep: return Mistake::kUnsteadyStep;
    case Fault::kStaleScratch: return Mistake::kAddsToScratch;
    case Fault::kPadsCount: return Mistake::kPadsCount;
    default: return Mistake::kNone;
  }
}

class Subject : public holdfast::testing::Subject {
 public:
  // `always` is planted where the kit asks for nothing else: a program that is wrong.
  static holdfast::testing::SubjectFactory Factory(Fault always = Fault::kNone) {
    return [always](holdfast::Device& device, const holdfast::testing::SubjectOptions& options)
               -> absl::StatusOr<std::unique_ptr<holdfast::testing::Subject>> {
      const Fault fault = options.plant == Fault::kNone ? always : options.plant;
      HOLDFAST_ASSIGN_OR_RETURN(auto rods, Rods::Create(device, MistakeOf(fault)));
      return std::make_unique<Subject>(std::move(rods));
    };
  }
  explicit Subject(std::unique_ptr<Rods> rods) : rods_(std::move(rods)) {}

  std::string name() const override { return "heat"; }
  holdfast::Arena& arena() override { return rods_->arena(); }
  holdfast::Residency& residency() override { return rods_->residency(); }
  holdfast::Lane& lane() override { return rods_->lane(); }
  holdfast::GraphSet& graphs() override { return rods_->graphs(); }
  holdfast::SpanId workspace() override { return rods_->workspace(); }

  absl::StatusOr<holdfast::testing::Outputs> Run(
      const holdfast::testing::RunRequest& request) override {
    HOLDFAST_ASSIGN_OR_RETURN(const auto warmth, rods_->Step({.seed = request.seed,
                                                              .poison_pads = request.poison_pads,
                                                              .eager = request.eager}));
    holdfast::testing::Outputs outputs;
    for (const auto& [graph, values] : warmth) {
      const auto bytes = std::as_bytes(std::span(values));
      outputs[graph + ".warmth"].assign(bytes.begin(), bytes.end());
    }
    return outputs;
  }
  absl::Status Enqueue() override { return rods_->Enqueue(); }
  absl::StatusOr<holdfast::LedgerReport> Memory() override { return rods_->Memory(); }
  std::vector<holdfast::testing::PathUse> Paths() override {
    return {{.name = "flow", .selected = true, .reserved_bytes = rods_->graphs().scratch_bytes()}};
  }

 private:
  std::unique_ptr<Rods> rods_;
};

}  // namespace heat

#endif  // HOLDFAST_TESTS_OUTSIDE_HEAT_SUBJECT_H_
