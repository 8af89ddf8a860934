// Verifies that the scribbler is found where it may lie and refused where it does not, and that it
// takes and gives back as a process of its own.
#include <cstdlib>

#include "device/bytes.h"
#include "gtest/gtest.h"
#include "testing/matchers.h"
#include "testing/scribble.h"
#include "testing/scribbler_program.h"

namespace holdfast::testing {
namespace {

TEST(ScribblerTest, TheHelperTakesFillsAndReturns) {
  const absl::StatusOr<ScribblerProgram> program = FindScribbler();
  ASSERT_THAT(program, IsOk());
  EXPECT_THAT(ScribbleInChild(*program, "host", 4 * kMiB), IsOk());
  const absl::StatusOr<std::unique_ptr<Neighbour>> neighbour = Neighbour::Start(*program, "host");
  ASSERT_THAT(neighbour, IsOk());
  EXPECT_THAT((*neighbour)->Take(2 * kMiB), IsOk());
  EXPECT_THAT((*neighbour)->Release(), IsOk());
}

TEST(ScribblerTest, WhatIsNoProgramIsRefusedByName) {
  EXPECT_THAT(FindScribbler({"/nowhere/scribble", {}}),
              FailsWith(ErrorKind::kNotFound, "/nowhere/scribble"));
  EXPECT_THAT(Neighbour::Start({"/bin/false", {}}, "host"), FailsWith(ErrorKind::kInternal));
}

TEST(ScribblerTest, AVariableThatNamesNothingIsNotPassedOver) {
  const char* const before = std::getenv(kScribblerVariable);
  const std::string kept = before == nullptr ? "" : before;
  setenv(kScribblerVariable, "/nowhere/else", 1);
  EXPECT_THAT(FindScribbler(), FailsWith(ErrorKind::kNotFound, "/nowhere/else"));
  if (before == nullptr) {
    unsetenv(kScribblerVariable);
  } else {
    setenv(kScribblerVariable, kept.c_str(), 1);
  }
}

TEST(ScribblerTest, AnUnknownDeviceIsTheChildsOwnError) {
  const absl::StatusOr<ScribblerProgram> program = FindScribbler();
  ASSERT_THAT(program, IsOk());
  EXPECT_THAT(ScribbleInChild(*program, "abacus", kMiB), FailsWith(ErrorKind::kInternal));
}

}  // namespace
}  // namespace holdfast::testing
