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
    synthetic = ["run", "--device", device, "--synthetic"]
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
        "synthetic-passes": (synthetic + ["mla_sparse:heads=16,split_parts=2,layers=2+gated_delta_net"] + QUICK +
                             ["--cycles", "3"], 0, "3/3 cycles\nPASS", "FAIL"),
        "synthetic-gating": (synthetic + ["flashmla_sparse:heads=16"] + QUICK + ["--cycles", "1"], 0,
                             "not reserved  prefill_context", "FAIL"),
        "synthetic-profiling": (synthetic + ["mla_windowed+gated_delta_net"] + QUICK + ["--cycles", "1"], 0,
                                "profiling: off: mla_windowed", "FAIL"),
        "synthetic-flip-bit": (synthetic + ["gated_delta_net"] + QUICK + ["--cycles", "1", "--inject", "flip-bit"], 1,
                               "FAIL: flip-bit", "PASS"),
        "synthetic-grammar": (synthetic + ["mla_sparse:heads=-1"], 2,
                              "heads is '-1'; must be a whole number in [1, 128]", "PASS"),
        "synthetic-unknown": (synthetic + ["mla_sprase"], 2, "'mla_sprase'", "PASS"),
        "synthetic-and-model": (run + ["--synthetic", "mla_sparse"], 2, "either --model DIR or --synthetic", "PASS"),
        "no-model": (["run", "--device", device], 2, "either --model DIR or --synthetic", "PASS"),
        "no-cycles": (run + ["--cycles", "0"], 2, "--cycles", "PASS"),
        "empty-prompt": (run + ["--prompt", ""], 2, "--prompt", "PASS"),
        "long-prompt": (run + ["--prompt", "x" * 200], 2, "--prompt", "PASS"),
        "bad-injection": (run + ["--inject", "gremlins"], 2, "gremlins", "PASS"),
        "bad-size": (run + ["--host-cap", "lots"], 2, "lots", "PASS"),
        "host-cap": (run + ["--cycles", "1", "--host-cap", "1MiB"], 1, "FAIL: error", "PASS"),
        "unwritable-json": (run + ["--cycles", "1", "--json", str(scratch / "no" / "x.json")], 2, "x.json", "zzz"),
    }
    table.update(size_cases())
    table.update(sleep_cases(model, device, scratch))
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


def size_cases():
    """`holdfast size`: needs no device."""
    sparse = ["size", "flashmla_sparse", "max_num_batched_tokens=8192", "max_model_len=786432", "prefill_factor=2"]
    huge = ["max_num_batched_tokens=1099511627776", "topk=4096", "n=1099511627776", "k=1"]
    return {
        "size-text": (sparse + ["heads=16"], 0, "1426063360 B", "prefill_context"),
        "size-json-gated": (sparse + ["heads=16", "--json"], 0, '"total_bytes": 1426063360', "prefill_context"),
        "size-json-ungated": (sparse + ["heads=16", "path_gating=OFF", "--json"], 0, '"total_bytes": 3238002688',
                              "zzz"),
        "size-kv-plan": (["size", "kv_plan", "init_free=80GiB", "free=20GiB", "committed=2GiB", "requested=80GiB",
                          "peak=4GiB", "block_bytes=1MiB", "--json"], 0, '"blocks": 15360', "total_bytes"),
        "size-capture-sizes": (["size", "capture_sizes", "max_num_seqs=8"], 0, "1 2 4 8 16", "total"),
        "size-help": (["size", "--help"], 0, "flashmla_sparse", "holdfast: "),
        "size-help-rule": (["size", "--help", "flashmla_sparse"], 0, "path_gating", "holdfast: "),
        "size-help-figures": (["size", "kv_plan", "--help"], 0, "usable_blocks", "holdfast: "),
        "size-help-unknown-rule": (["size", "--help", "walk"], 2, "'walk'", "RULE"),
        "size-no-rule": (["size"], 2, "RULE", "total"),
        "size-unknown-rule": (["size", "walk"], 2, "'walk'", "total"),
        "size-unknown-key": (sparse + ["heads=16", "haeds=16"], 2, "'haeds'; must be one of heads", "total"),
        "size-key-twice": (sparse + ["heads=16", "heads=32"], 2, "heads is '32'; must be given once", "total"),
        "size-key-missing": (sparse, 2, "heads is missing; must be a whole number in [1, 128]", "total"),
        "size-negative": (sparse + ["heads=-16"], 2, "heads is '-16'; must be a whole number", "total"),
        "size-zero": (sparse + ["heads=0"], 2, "heads is 0; must be a whole number", "total"),
        "size-huge": (sparse + ["heads=9999999999999999999999"], 2, "must be a whole number in [1, 128]", "total"),
        "size-non-numeric": (sparse + ["heads=many"], 2, "heads is 'many'; must be a whole number", "total"),
        "size-bad-switch": (sparse + ["heads=16", "hisparse=maybe"], 2, "hisparse is 'maybe'; must be 0, false",
                            "total"),
        "size-bad-choice": (sparse + ["heads=16", "arch=sm70"], 2, "'sm70'; must be one of sm90, sm100", "total"),
        "size-no-equals": (sparse + ["heads"], 2, "'heads'; must be key=value", "total"),
        "size-overflow": (["size", "moe"] + huge, 2, "4096 * 1099511627776 * 2 does not fit 64 bits", "total"),
        "size-unsupported": (["size", "flashinfer_gqa", "heads=64", "kv_heads=5"], 2, "a divisor of heads, 64",
                             "total"),
        "size-bad-bytes": (["size", "kv_plan", "block_bytes=1MB"], 2, "'1MB'; must be a size like", "blocks\n"),
        "size-unknown-flag": (sparse + ["heads=16", "--jsno"], 2, "--jsno", "total"),
    }


def sleep_cases(model, device, scratch):
    """The commands about sleep alone; a table as of cases()."""
    nowhere = str(scratch / "no" / "x.json")
    bench = ["bench", "sleep", "--device", device]
    small = bench + ["--bytes", "16MiB", "--cache-bytes", "8MiB", "--chunk-bytes", "4MiB", "--cycles", "2"]
    soak = ["soak", "--model", model, "--device", device, "--seed", "3"]
    shared = ["--bytes", "1GiB"] if device != "host" else []
    table = {
        "bench-sleep": (small + ["--json", str(scratch / "sleep.json")], 0, "plain pinned copy", "holdfast: "),
        "bench-state": (small + ["--contents", "unsealed", "--changed", "0.2", "--pool", "background",
                                 "--spans", "100", "--no-verify"], 0, "cycle 2", "holdfast: "),
        "bench-loaded": (small + ["--through-pool", "--host-memory", "cold", "--no-detect"], 0, "cycle 2", "holdfast: "),
        "bench-goals": (bench + ["--suite", "goals", "--scale", "0.001", "--json", str(scratch / "goals.json")], 0,
                        "nothing is judged", "holdfast: "),
        "bench-neighbour": (bench + shared + ["--neighbour", "3"], 0,
                            "left out" if device == "host" else "3 of 3", "refusal"),
        "bench-nothing": (["bench"], 2, "subcommand", "plain"),
        "bench-unknown": (["bench", "dance"], 2, "dance", "plain"),
        "bench-no-bytes": (bench + ["--bytes", "0"], 2, "--bytes", "plain"),
        "bench-no-spans": (bench + ["--spans", "0"], 2, "--spans", "plain"),
        "bench-no-cycles": (bench + ["--cycles", "0"], 2, "--cycles", "plain"),
        "bench-changed": (bench + ["--changed", "1.5"], 2, "--changed", "plain"),
        "bench-pause": (bench + ["--pause", "-1"], 2, "--pause", "plain"),
        "bench-pool": (bench + ["--pool", "puddle"], 2, "puddle", "plain"),
        "bench-suite": (bench + ["--suite", "speed"], 2, "speed", "plain"),
        "bench-scale": (bench + ["--suite", "goals", "--scale", "0"], 2, "--scale", "plain"),
        "bench-rounds": (bench + ["--neighbour", "-1"], 2, "--neighbour", "left out"),
        "bench-unwritable": (small + ["--json", nowhere], 2, "x.json", "zzz"),
        "soak": (soak + ["--cycles", "8", "--json", str(scratch / "soak.json")], 0, "seed 3: 8 of 8 cycles", "FAIL"),
        "soak-no-cycles": (soak + ["--cycles", "0"], 2, "--cycles", "PASS"),
        "soak-missing-model": (["soak", "--model", str(scratch / "nowhere"), "--device", device], 2, "nowhere", "PASS"),
        "failures-bad-plant": (["failures", "--inject", "gremlins"], 2, "gremlins", "PASS"),
        "scribble-nothing": (["scribble", "--device", device], 2, "--bytes", "scribbled"),
        "scribble-both": (["scribble", "--device", device, "--bytes", "1MiB", "--serve"], 2, "--serve", "scribbled"),
        "scribble-serve": (["scribble", "--device", device, "--serve"], 0, "", "ok"),
    }
    for fault in ("stale-pointer", "swap-chunks", "flip-bit", "lost-refresh", "early-unmap"):
        table["soak-" + fault] = (soak + ["--cycles", "2", "--inject", fault], 1, ": " + fault + ": ", "PASS")
    return table


def check_sleep_report(scratch):
    report = json.loads((scratch / "sleep.json").read_text())["case"]
    wanted = {"seconds", "seconds_by_stage", "times_plain_copy", "kept_bytes", "clean_bytes"}
    sound = len(report["cycles"]) == 2 and wanted <= set(report["cycles"][1]["kept_sleep"])
    return [] if sound and report["own_bytes_asleep"] == 0 else ["writes a report that does not agree"]


def check_goals_report(scratch):
    report = json.loads((scratch / "goals.json").read_text())
    sound = len(report["cases"]) == 7 and len(report["rows"]) >= 15 and not report["judged"]
    return [] if sound else ["writes a report that does not agree"]


def check_soak_report(scratch):
    report = json.loads((scratch / "soak.json").read_text())
    sound = report["pass"] and report["seed"] == 3 and report["counts"]["sleeps"] == 8
    return [] if sound else ["writes a report that does not agree"]


REPORTS = {"bench-sleep": check_sleep_report, "bench-goals": check_goals_report, "soak": check_soak_report}


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
            if name.endswith("early-unmap"):  # a host kernel that faults is left by a long jump: what it held is lost
                environment["ASAN_OPTIONS"] = "detect_leaks=0"
            done = subprocess.run([args.holdfast] + arguments, capture_output=True, text=True, errors="replace",
                                  env=environment, stdin=subprocess.DEVNULL)
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
            if name in REPORTS and not problems:
                problems += REPORTS[name](scratch)
            print(f"{'FAILED' if problems else 'ok':6} {name}" + "".join(f"\n       {x}" for x in problems))
            if problems:
                print(said)
                failed.append(name)
    print(f"{ran - len(failed)} passed, {len(failed)} failed")
    sys.exit(1 if failed or ran == 0 else 0)


if __name__ == "__main__":
    main()
