#!/usr/bin/env bash
# Verifies the `dev` script: its manner with wrong arguments, and the functions on which verdicts rest (counting
# test cases, comparing versions, refusing a bundle that needs foreign libraries).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

failures=0
check() {  # NAME COMMAND...: the command must succeed
  local name=$1
  shift
  if "$@"; then echo "ok      $name"; else echo "FAILED  $name"; failures=$((failures + 1)); fi
}

# refuses STATUS TEXT ARG...: ./dev ARG... prints exactly one line, which holds TEXT, and exits with STATUS.
refuses() {
  local status=$1 text=$2 got=0
  shift 2
  bash ./dev "$@" >"$scratch/out" 2>&1 </dev/null || got=$?
  [[ $got -eq $status && $(wc -l <"$scratch/out") -eq 1 ]] && grep -qF -- "$text" "$scratch/out"
}

scripts=(dev .ci/run tests/house/*.sh tests/gpu/*.sh)
for script in "${scripts[@]}"; do check "$script is valid bash" bash -n "$script"; done
if command -v shellcheck >/dev/null; then
  check "the scripts please shellcheck" shellcheck --severity=warning "${scripts[@]}"
fi

check "an unknown command is one line and status 2" refuses 2 "unknown command 'nonsense'" nonsense
check "an unknown preset is one line and status 2" refuses 2 "no preset 'nonsense'" build nonsense
check "an unknown option of test is refused" refuses 2 "--nonsense" test --nonsense
check "setup takes no arguments" refuses 2 "takes no arguments" setup now

lists_all_commands() {
  local command
  bash ./dev help >"$scratch/help"
  for command in setup build demo test gpu-bundle gpu-check format format-check help; do
    grep -q "^  $command\b" "$scratch/help" || { echo "help lacks $command"; return 1; }
  done
}
check "help lists every command" lists_all_commands

# From here on the functions of dev themselves.
# shellcheck source=dev disable=SC1091
source ./dev

counts_as() {  # "PASSED FAILED" of the log on standard input
  cat >"$scratch/log"
  [[ $(count_cases "$scratch/log") == "$1" ]]
}
check "cases are counted, other tests and crashes as one" counts_as "20 6" <<'LOG'
1/4 Testing: device_test
[==========] 12 tests ran.
[  PASSED  ] 12 tests.
Test Passed.
2/4 Testing: graphs_test
[  PASSED  ] 1 test.
[  FAILED  ] 2 tests, listed below:
[  FAILED  ] A.B
Test Failed.
3/4 Testing: house_dev
Test Passed.
4/4 Testing: runtime_test
Test Failed.
5/6 Testing: slow_test
[  PASSED  ] 0 tests.
Test Failed.
7/8 Testing: tools_cli
FAILED  some case
6 passed, 1 failed
Test Failed.
8/8 Testing: never_built_test
Command: ""
Test Passed.
LOG
check "an empty log counts nothing" counts_as "0 0" </dev/null

refuses_version() { ! at_least "$@"; }
check "13.0 is at least 12.8" at_least 13.0 12.8
check "12.8 is at least 12.8" at_least 12.8 12.8
check "12.10 is at least 12.8" at_least 12.10 12.8
check "12.4 is not" refuses_version 12.4 12.8
check "9.9 is not" refuses_version 9.9 12.8

finds_foreign_library() {
  readelf() { echo " 0x1 (NEEDED)   Shared library: [libabsl_strings.so.20220623]"; }
  ! (check_needed_libraries some_test) 2>"$scratch/err" && grep -q libabsl_strings "$scratch/err"
}
accepts_glibc() {
  readelf() { printf ' 0x1 (NEEDED)   Shared library: [%s]\n' libc.so.6 libm.so.6; }
  (check_needed_libraries some_test)
}
check "a bundle that needs abseil's shared library is refused" finds_foreign_library
check "a bundle that needs only glibc is accepted" accepts_glibc

at_least_one_job() { [[ $(job_count) -ge 1 ]]; }
check "there is always one job" at_least_one_job

[[ $failures -eq 0 ]] || { echo "$failures failed"; exit 1; }
