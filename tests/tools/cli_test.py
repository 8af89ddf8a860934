#!/usr/bin/env python3
"""The command line as a stranger meets it: exit status and one clear line, for good and bad input.

  cli_test.py HOLDFAST MODEL [--device SPEC] [--case NAME]...
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

QUICK = ["--max-tokens", "4", "--max-batch", "16", "--host-capacity", "1GiB", "--max-sequence", "128"]


def cases(model, device, scratch):
    """name -> (arguments, exit status, text that must appear, text that must not)"""
    run = ["run", "--model", model, "--device", device] + QUICK
    truncated = scratch / "truncated"
    shutil.copytree(model, truncated)
    data = (truncated / "model.safetensors").read_bytes()
    (truncated / "model.safetensors").write_bytes(data[:len(data) // 2])
    experts = scratch / "experts"
    experts.mkdir()
    config = json.loads((pathlib.Path(model) / "config.json").read_text())
    config.update(first_k_dense_replace=1, n_routed_experts=8)
    (experts / "config.json").write_text(json.dumps(config))
    table = {
        "passes": (run + ["--cycles", "1", "--json", str(scratch / "report.json")], 0, "PASS", "FAIL"),
        "deterministic-passes": (run + ["--cycles", "2", "--deterministic"], 0, "2/2 cycles\nPASS", "FAIL"),
        "help": (["run", "--help"], 0, "--inject", "holdfast: "),
        "version": (["--version"], 0, "0.", "holdfast: "),
        "no-command": ([], 2, "holdfast: ", "PASS"),
        "unknown-command": (["walk"], 2, "walk", "PASS"),
        "unknown-flag": (run + ["--frobnicate"], 2, "--frobnicate", "PASS"),
        "unknown-device": (["run", "--model", model, "--device", "tpu"], 2, "tpu", "PASS"),
        "absent-gpu": (["run", "--model", model, "--device", "cuda:99"], 2, "cuda:99", "PASS"),
        "missing-model": (["run", "--model", str(scratch / "nowhere"), "--device", device], 2, "nowhere", "PASS"),
        "truncated-model": (["run", "--model", str(truncated), "--device", device], 2, "model.safetensors", "PASS"),
        "experts": (["run", "--model", str(experts), "--device", device], 2, "n_routed_experts", "PASS"),
        "no-cycles": (run + ["--cycles", "0"], 2, "--cycles", "PASS"),
        "empty-prompt": (run + ["--prompt", ""], 2, "--prompt", "PASS"),
        "long-prompt": (run + ["--prompt", "x" * 200], 2, "--prompt", "PASS"),
        "bad-injection": (run + ["--inject", "gremlins"], 2, "gremlins", "PASS"),
        "bad-size": (run + ["--host-cap", "lots"], 2, "lots", "PASS"),
        "host-cap": (run + ["--cycles", "1", "--host-cap", "1MiB"], 1, "FAIL: error", "PASS"),
        "unwritable-json": (run + ["--cycles", "1", "--json", str(scratch / "no" / "x.json")], 2, "x.json", "zzz"),
    }
    replay = ["bench", "replay", "--device", device, "--launches", "50"]
    torch = scratch / "torch.json"
    torch.write_text('{"torch": "2", "rows": [{"nodes": 2, "p50_us": 4.5, "p99_us": 9.5}]}')
    (scratch / "other.json").write_text('{"rows": [{"nodes": 2}]}')
    small = ["bench", "capture", "--device", device, "--layers", "2", "--width", "16", "--largest", "16"]
    table.update({
        "bench-replay-json": (["bench", "replay", "--device", "host", "--launches", "9", "--nodes", "1", "--json",
                               str(scratch / "replay.json")], 0, "overhead", "holdfast: "),
        "bench-no-command": (["bench"], 2, "holdfast: ", "nodes"),
        "bench-no-launches": (replay + ["--launches", "0"], 2, "--launches", "overhead"),
        "bench-no-nodes": (replay + ["--nodes", "0"], 2, "--nodes", "overhead"),
        "bench-torch-missing": (replay + ["--nodes", "1", "--torch", str(scratch / "no.json")], 2, "no.json", "nodes "),
        "bench-torch-other": (replay + ["--nodes", "1", "--torch", str(scratch / "other.json")], 2, "other.json", "p50"),
        "bench-capture": (small + ["--json", str(scratch / "capture.json")], 0, "5 buckets of a 2-layer step", "holdfast: "),
        "bench-capture-layers": (["bench", "capture", "--device", device, "--layers", "0"], 2, "--layers", "buckets"),
        "bench-capture-width": (["bench", "capture", "--device", device, "--width", "17"], 2, "--width", "buckets"),
        "bench-capture-largest": (["bench", "capture", "--device", device, "--largest", "-1"], 2, "--largest",
                                  "buckets"),
    })
    if device == "host":
        table["bench-replay-torch"] = (replay + ["--nodes", "2,5", "--torch", str(torch)], 0,
                                       "PyTorch   4.500 /   9.500", "holdfast: ")
        table["capacity"] = (["run", "--model", model, "--device", "host", "--host-capacity", "30MiB"], 2,
                             "out of memory", "PASS")
    for fault in ("stale-pointer", "swap-chunks", "flip-bit", "lost-refresh", "early-unmap"):
        table[fault] = (run + ["--cycles", "1", "--inject", fault], 1, "FAIL: " + fault, "PASS")
    return table


def main():
    p = argparse.ArgumentParser()
    p.add_argument("holdfast")
    p.add_argument("model")
    p.add_argument("--device", default="host")
    p.add_argument("--case", action="append", default=[])
    args = p.parse_args()
    failed, ran = [], 0
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        for name, (arguments, status, present, absent) in cases(args.model, args.device, scratch).items():
            if args.case and name not in args.case:
                continue
            ran += 1
            environment = dict(os.environ)
            if name == "early-unmap":  # a host kernel that faults is left by a long jump: what it held is lost
                environment["ASAN_OPTIONS"] = "detect_leaks=0"
            done = subprocess.run([args.holdfast] + arguments, capture_output=True, text=True, errors="replace",
                                  env=environment)
            said = done.stdout + done.stderr
            problems = []
            if done.returncode != status:
                problems.append(f"exit status {done.returncode} instead of {status}")
            if present not in said:
                problems.append(f"does not say '{present}'")
            if absent in said:
                problems.append(f"says '{absent}'")
            if status == 2 and len(done.stderr.strip().splitlines()) != 1:
                problems.append("does not complain in one line")
            if name == "passes" and not problems:
                report = json.loads((scratch / "report.json").read_text())
                if not (report["pass"] and len(report["cycles"]) == 1 and report["prompts"] == 64):
                    problems.append("writes a report that does not agree")
            print(f"{'FAILED' if problems else 'ok':6} {name}" + "".join(f"\n       {x}" for x in problems))
            if problems:
                print(said)
                failed.append(name)
    print(f"{ran - len(failed)} passed, {len(failed)} failed")
    sys.exit(1 if failed or ran == 0 else 0)


if __name__ == "__main__":
    main()
