#!/usr/bin/env python3
"""`holdfast plan` as a stranger meets it: the budget of a start without a device, what a flag costs, and one clear
line for bad input; and `holdfast run`, whose figures stand beside the planned ones.

  plan_cli_test.py HOLDFAST MODEL [--device SPEC]
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

GRANULE = 2 << 20
H200 = ["--device-bytes", "139GiB"]


def cases(model, scratch):
    """name -> (arguments, exit status, text that must appear, text that must not)"""
    plan = ["plan", "--model", model]
    truncated = scratch / "truncated"
    shutil.copytree(model, truncated)
    (truncated / "config.json").write_text((truncated / "config.json").read_text()[:50])
    weights = (truncated / "model.safetensors").read_bytes()
    headless = scratch / "headless"
    shutil.copytree(model, headless)
    (headless / "model.safetensors").write_bytes(weights[:20])
    return {
        "gpu": (plan + H200, 0, "graph executables", "would not start"),
        "host": (plan + ["--device", "host"], 0, "weights/immutable", "graph executables"),
        "why": (plan + H200, 0, "132 multiprocessors x 2048 threads x 1024 B", "measured"),
        "other-gpu": (plan + H200 + ["--multiprocessors", "148"], 0, "148 multiprocessors", "132"),
        "against": (plan + H200 + ["--against", "max-batch=4", "max-sequence=128"], 0, "against", "why"),
        "too-small": (plan + ["--device-bytes", "256MiB"], 0, "would not start: ", "xx"),
        "one-short": (plan + H200 + ["--kv-blocks", "4"], 0, "1 blocks are missing", "xx"),
        "just-fits": (plan + H200 + ["--kv-blocks", "5"], 0, "5 of 65 pages", "would not start"),
        "drafts": (plan + H200 + ["--kv-blocks", "5", "--draft-tokens", "1"], 0, "1 blocks are missing", "xx"),
        "help": (["plan", "--help"], 0, "--against", "holdfast: "),
        "no-model": (["plan"], 2, "--model", "weights"),
        "missing-model": (["plan", "--model", str(scratch / "nowhere")] + H200, 2, "nowhere", "weights/"),
        "truncated-config": (["plan", "--model", str(truncated)] + H200, 2, "config.json", "weights/"),
        "truncated-weights": (["plan", "--model", str(headless)] + H200, 2, "model.safetensors", "weights/"),
        "unknown-flag": (plan + H200 + ["--frobnicate"], 2, "--frobnicate", "weights/"),
        "unknown-device": (plan + ["--device", "tpu"], 2, "tpu", "weights/"),
        "two-budgets": (plan + H200 + ["--kv-bytes", "1GiB", "--kv-blocks", "9"], 2, "excludes --kv-bytes", "weights/"),
        "bad-share": (plan + H200 + ["--utilization", "1.5"], 2, "utilization", "weights/"),
        "no-share": (plan + H200 + ["--utilization", "nan"], 2, "utilization", "weights/"),
        "bad-size": (plan + ["--device-bytes", "lots"], 2, "lots", "weights/"),
        "tiny": (plan + ["--device-bytes", "4096"], 2, "--device-bytes", "weights/"),
        "negative": (plan + H200 + ["--kv-blocks", "-1"], 2, "kv blocks", "weights/"),
        "huge": (plan + H200 + ["--max-batch", "2147483647"], 2, "holdfast: ", "weights/"),
        "no-batch": (plan + H200 + ["--max-batch", "0"], 2, "max_batch", "weights/"),
        "bad-dtype": (plan + H200 + ["--dtype", "f8"], 2, "f8", "weights/"),
        "against-unknown": (plan + H200 + ["--against", "frobnicate=1"], 2, "frobnicate", "weights/"),
        "against-bad": (plan + H200 + ["--against", "max-batch=0"], 2, "--against", "weights/"),
        "against-empty": (plan + H200 + ["--against"], 2, "--against", "weights/"),
        "run-two-budgets": (["run", "--model", model, "--device", "host", "--kv-bytes", "1GiB", "--utilization", "0.5"],
                            2, "excludes --utilization", "PASS"),
        "run-too-few-blocks": (["run", "--model", model, "--device", "host", "--kv-blocks", "4"], 2,
                               "1 blocks are missing", "PASS"),
    }


def ask(tool, arguments):
    done = subprocess.run([tool] + arguments, capture_output=True, text=True, errors="replace")
    return json.loads(done.stdout) if done.returncode == 0 else {"failed": done.stderr}


def line(plan, owner):
    return next(l for l in plan["lines"] if l["owner"] == owner)


def check_difference(tool, model):
    """What a larger batch costs is seen in scratch and executables, and taken from nothing else's line."""
    both = ask(tool, ["plan", "--model", model, "--json"] + H200 + ["--against", "max-prefill-tokens=4096"])
    try:
        plan, against = both["plan"], both["against"]
        sound = (line(against, "workspace/scratch")["planned_bytes"] > line(plan, "workspace/scratch")["planned_bytes"]
                 and line(against, "weights/immutable") == line(plan, "weights/immutable")
                 and against["operations"] > plan["operations"])
        for l in plan["lines"]:
            tokens = l["planned_bytes"] * plan["kv"]["page_tokens"] // plan["kv"]["page_bytes"]
            sound = sound and l["kv_tokens"] == tokens
    except (KeyError, StopIteration) as error:
        return [f"difference: {error!r}: {both}"]
    return [] if sound else [f"difference: {both}"]


def check_run(tool, model, device, path):
    """After a start: every line of the arena within one granule, the cache within the budget, both orders there."""
    done = subprocess.run([tool, "run", "--model", model, "--device", device, "--max-tokens", "2", "--max-batch", "4",
                           "--host-capacity", "1GiB", "--max-sequence", "128", "--cycles", "1", "--no-scribble",
                           "--json", str(path)], capture_output=True, text=True)
    if done.returncode != 0:
        return [f"run: exit status {done.returncode}: {done.stdout}{done.stderr}"]
    report = json.loads(path.read_text())
    plan, kv = report["plan"], report["kv"]
    off = [l for l in plan["lines"] if l["kind"] == "arena" and
           abs(l["planned_bytes"] - l["measured_bytes"]) > GRANULE]
    found = [f"run: off: {l}" for l in off]
    if not plan["holds"] or not all(l["holds"] for l in plan["lines"]):
        found.append(f"run: the plan does not hold: {plan['lines']}")
    if report["ledger"]["process_bytes"] > kv["budget_bytes"]:
        found.append("run: above the budget")
    if plan["kv"]["pages"] != kv["pages"] or kv["measured"]["pages"] != kv["pages"]:
        found.append(f"run: planned {plan['kv']}, got {kv}")
    for said in ("measured order: ", "classic order: ", "planned by owner"):
        if said not in done.stdout:
            found.append(f"run: does not say '{said}'")
    return found


def check_override(tool, model, device):
    """The workspace's environment: the value in effect is said, one below the need is refused with both figures."""
    found = []
    for value, status, said in (("8MiB", 0, "HOLDFAST_WORKSPACE_BYTES = 8388608 (environment)"),
                                ("4KiB", 2, "HOLDFAST_WORKSPACE_BYTES"), ("lots", 2, "lots")):
        done = subprocess.run([tool, "run", "--model", model, "--device", device, "--max-tokens", "2", "--max-batch",
                               "4", "--host-capacity", "1GiB", "--max-sequence", "128", "--cycles", "1",
                               "--no-scribble"], capture_output=True, text=True,
                              env=dict(os.environ, HOLDFAST_WORKSPACE_BYTES=value))
        if done.returncode != status or said not in done.stdout + done.stderr:
            found.append(f"override {value}: exit status {done.returncode}: {done.stdout}{done.stderr}")
    return found


def main():
    p = argparse.ArgumentParser()
    p.add_argument("holdfast")
    p.add_argument("model")
    p.add_argument("--device", default="host")
    args = p.parse_args()
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        for name, (arguments, status, present, absent) in cases(args.model, scratch).items():
            done = subprocess.run([args.holdfast] + arguments, capture_output=True, text=True, errors="replace")
            said = done.stdout + done.stderr
            one_line = status != 2 or len(done.stderr.strip().splitlines()) == 1
            if done.returncode != status or present not in said or absent in said or not one_line:
                failures.append(f"{name}: exit status {done.returncode} instead of {status}; it says\n{said[:2000]}")
        failures += check_difference(args.holdfast, args.model)
        failures += check_run(args.holdfast, args.model, args.device, scratch / "run.json")
        failures += check_override(args.holdfast, args.model, args.device)
    print("\n".join(failures) or "all passed")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
