#!/usr/bin/env bash
# Verifies tests/gpu/run_bundle.sh on a made-up bundle: it runs everything, goes on after a failure, and its exit
# status, table and summary.json say so.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
bundle=$scratch/bundle
mkdir -p "$bundle/bin" "$bundle/tests"
echo 'import sys; print(sys.argv[1:])' >"$bundle/tests/cli_test.py"
cp "$bundle/tests/cli_test.py" "$bundle/tests/audit_cli_test.py"
cp "$bundle/tests/cli_test.py" "$bundle/tests/outside_program_test.py"
cp "$bundle/tests/cli_test.py" "$bundle/tests/check_cli_test.py"
cp tests/gpu/run_bundle.sh "$bundle/run"

program() {  # NAME EXIT_STATUS: prints the test device and its arguments
  # shellcheck disable=SC2016
  printf '#!/bin/sh\necho "$HOLDFAST_TEST_DEVICE $*"\nexit %d\n' "$2" >"$bundle/bin/$1"
  chmod +x "$bundle/bin/$1"
}
die() { echo "FAILED  $*"; cat "$scratch/out"; exit 1; }
run_bundle() {  # EXPECTED_STATUS ARG...
  local expected=$1 status=0
  shift
  bash "$bundle/run" "$@" >"$scratch/out" 2>&1 || status=$?
  [[ $status -eq $expected ]] || die "exit status $status instead of $expected for: $*"
}

program a_test 0
program b_test 0
program holdfast 0
run_bundle 0 --out "$scratch/good" --device host
grep -qx "10 passed, 0 failed" "$scratch/out" || die "no count of ten passes"
grep -q '^host --gtest_output=json:' "$scratch/good/a_test.log" || die "the device was not passed on"
grep -q -- '--device host --dictionary share/words' "$scratch/good/demo.log" || die "the demo did not get its arguments"
grep -q -- '--cycles 200' "$scratch/good/soak.log" || die "the soak did not get its arguments"
grep -q -- '--plugin bin/heat_plugin.so --device host' "$scratch/good/check_plugin.log" || die "no plug-in was checked"
[[ ! -e $scratch/good/bench_sleep.log ]] || die "a benchmark ran unasked"
run_bundle 0 --out "$scratch/bench" --device host --bench
grep -q -- '--suite goals' "$scratch/bench/bench_sleep.log" || die "--bench ran no benchmark"
python3 -c 'import json,sys; s = json.load(open(sys.argv[1])); sys.exit(s["passed"] != 10 or s["failed"] != 0)' \
  "$scratch/good/summary.json" || die "summary.json is wrong"

program a_test 1
run_bundle 1 --out "$scratch/bad"
grep -q '^FAIL .*a_test$' "$scratch/out" || die "the failure is not in the table"
grep -q '^PASS .*b_test$' "$scratch/out" || die "it did not go on after a failure"
grep -q '^PASS .*demo$' "$scratch/out" || die "it did not go on to the demo"
grep -q '^cuda:0' "$scratch/bad/b_test.log" || die "the default device is not cuda:0"
grep -q '"failed": 1' "$scratch/bad/summary.json" || die "summary.json hides the failure"

program a_test 0
program holdfast 1
run_bundle 1 --out "$scratch/demo"

run_bundle 2 --nonsense
[[ $(wc -l <"$scratch/out") -eq 1 ]] || die "a wrong argument is not one line"
run_bundle 2 --out
echo "ok"
