#!/usr/bin/env bash
# Runs every test program and the demo of a GPU bundle, on a machine that needs only a driver. Copied into the
# bundle as `run`; the repository is not needed.
#
# usage: run [--out DIR] [--device cuda:0] [--sanitize] [--bench]
#   --out       where logs, JSON and summary.json go (default: ../gpu-check beside the bundle)
#   --device    what to test on (default cuda:0)
#   --sanitize  if compute-sanitizer is on PATH, also the kernels' tests under memcheck, racecheck, synccheck and
#               initcheck
#   --bench     also every benchmark, with JSON: minutes, and most of the GPU's memory
# Goes on after a failure. Exit status: 0 if all passed, 1 if not, 2 for a wrong argument.
set -euo pipefail

usage_error() { printf 'run: %s (--out DIR, --device D, --sanitize, --bench)\n' "$*" >&2; exit 2; }

bundle=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=$bundle/../gpu-check
device=cuda:0
sanitize=false
bench=false
while [[ $# -gt 0 ]]; do
  case $1 in
    --out | --device)
      [[ $# -ge 2 && -n $2 ]] || usage_error "$1 needs a value"
      if [[ $1 == --out ]]; then out=$2; else device=$2; fi
      shift 2 ;;
    --sanitize) sanitize=true; shift ;;
    --bench) bench=true; shift ;;
    *) usage_error "unknown argument '$1'" ;;
  esac
done
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$bundle"
export HOLDFAST_TEST_DEVICE=$device
export PATH=$bundle/bin:$PATH

# Left out under sanitizers: tests of the host device alone, which make addresses fault on purpose, and whole
# engines.
readonly left_out='HostDevice*:*Engine*:*Parity*:*FailEachCall*'
limit_s=300  # a step; the longest takes a minute

rows=()
passed=0
failed=0

# step NAME COMMAND...: runs it with output in NAME.log, adds a row to the table and to summary.json.
step() {
  local name=$1 status=0 start=$SECONDS
  shift
  timeout "$limit_s" "$@" >"$out/$name.log" 2>&1 </dev/null || status=$?
  local seconds=$((SECONDS - start)) result=PASS
  if [[ $status -eq 0 ]]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    result=FAIL
    printf -- '---- %s: exit status %s; the end of its log:\n' "$name" "$status"
    tail -n 40 "$out/$name.log"
  fi
  printf '%-4s %4d s  %s\n' "$result" "$seconds" "$name"
  rows+=("{\"name\": \"$name\", \"result\": \"$result\", \"exit_status\": $status, \"seconds\": $seconds}")
}

if command -v nvidia-smi >/dev/null; then
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader || true
fi

for test in bin/*_test; do
  name=${test##*/}
  step "$name" "$test" "--gtest_output=json:$out/$name.json"
done
if command -v python3 >/dev/null; then
  step tools_cli python3 -B tests/cli_test.py bin/holdfast models/demo --device "$device"
  step tools_audit_cli python3 -B tests/audit_cli_test.py bin/holdfast models/demo --device "$device"
  step outside python3 -B tests/outside_program_test.py bin/outside --device "$device"
  step tools_check_cli python3 -B tests/check_cli_test.py bin/holdfast models/demo plugins --device "$device"
else
  echo "run: no python3: the tests of the command line and of the outside program are left out"
fi
step demo bin/holdfast run --model models/demo --cycles 3 --device "$device" --dictionary share/words \
  --min-dictionary-share 0.5 --json "$out/demo.json"

step check_plugin bin/holdfast check --plugin bin/heat_plugin.so --device "$device" --json "$out/check_plugin.json"
step soak bin/holdfast soak --model models/demo --cycles 200 --seed 1 --device "$device" --json "$out/soak.json"
step failures bin/holdfast failures --device "$device" --json "$out/failures.json" --markdown "$out/failures.md"

if $bench; then
  step bench_sleep bin/holdfast bench sleep --device "$device" --suite goals --big --json "$out/bench_sleep.json"
  step bench_neighbour bin/holdfast bench sleep --device "$device" --bytes 1GiB --neighbour 100
  limit_s=900  # 200,000 replays of 1000 kernels
  step bench_replay bin/holdfast bench replay --device "$device" --json "$out/bench_replay.json"
  limit_s=300
  step bench_capture bin/holdfast bench capture --device "$device" --json "$out/bench_capture.json"
  step bench_audit bin/holdfast bench audit --device "$device" --json "$out/bench_audit.json"
fi

if $sanitize; then
  if command -v compute-sanitizer >/dev/null; then
    # Every kernel of ours on small shapes; whole engines run the same ones, only longer. device_test runs the
    # vendor's products too: beyond stray accesses only our kernels in it, the leaf hash and the word scan, are checked.
    for run in {memcheck,racecheck,synccheck,initcheck}/{device,attention,runtime}; do
      filter=-$left_out
      [[ $run == memcheck/device || $run != */device ]] || filter="*Hash*:*Scan*-$left_out"
      step "${run/\//_}" compute-sanitizer --tool "${run%/*}" --report-api-errors no --error-exitcode 9 \
        "bin/${run#*/}_test" "--gtest_filter=$filter"
    done
  else
    echo "run: no compute-sanitizer on PATH: memcheck left out"
  fi
fi

{
  printf '{"device": "%s", "passed": %d, "failed": %d, "steps": [\n' "$device" "$passed" "$failed"
  for i in "${!rows[@]}"; do
    [[ $i -eq 0 ]] || printf ',\n'
    printf '  %s' "${rows[$i]}"
  done
  printf '\n]}\n'
} >"$out/summary.json"
echo "logs and JSON: $out"
echo "$passed passed, $failed failed"
[[ $failed -eq 0 ]]
