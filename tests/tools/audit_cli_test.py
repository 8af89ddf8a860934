#!/usr/bin/env python3
"""`holdfast audit` and `holdfast bench audit` as a stranger meets them: what they say of manifests that a run
wrote, and one clear line for files that are none.

  audit_cli_test.py HOLDFAST MODEL [--device SPEC]
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile


def cases(files, model, device):
    """name -> (arguments, exit status, text that must appear, text that must not)"""
    good, same, moved, short, renamed = (str(files[n]) for n in ("good", "same", "moved", "short", "renamed"))
    dot = str(files["dot"])
    return {
        "prints": (["audit", good], 0, "needs tags: ", "unmapped"),
        "lists-pointers": (["audit", good, "--pointers", "--graph", "decode/1"], 0, "copy source: host span", "FAIL"),
        "same": (["audit", good, same], 0, "the same", "difference"),
        "differs": (["audit", good, moved], 1, "node 0 (", "the same"),
        "differs-by-span": (["audit", good, renamed], 1, "span 'renamed'", "the same"),
        "most": (["audit", good, renamed, "--most", "1"], 1, "more", "the same"),
        "dot": (["audit", good, "--graph", "decode/1", "--dot", dot], 0, "graph decode/1", "graph decode/2"),
        "dot-of-many": (["audit", good, "--dot", dot], 2, "--graph", "nodes"),
        "no-such-graph": (["audit", good, "--graph", "decode/3"], 2, "decode/3", "nodes"),
        "missing": (["audit", good + ".none"], 2, ".none", "nodes"),
        "truncated": (["audit", short], 2, short, "nodes"),
        "truncated-second": (["audit", good, short], 2, short, "nodes"),
        "foreign": (["audit", str(pathlib.Path(model) / "config.json")], 2, "not a graph manifest", "nodes"),
        "binary": (["audit", str(pathlib.Path(model) / "model.safetensors")], 2, "model.safetensors", "nodes"),
        "no-file": (["audit"], 2, "files", "nodes"),
        "bench-nothing": (["bench"], 2, "subcommand", "plain"),
        "bench-no-nodes": (["bench", "audit", "--nodes", "0"], 2, "--nodes", "plain"),
        "bench-no-device": (["bench", "audit", "--device", "tpu"], 2, "tpu", "plain"),
    }


def write_files(tool, model, device, folder):
    names = ("good", "same", "moved", "short", "renamed", "dot", "bench")
    files = {name: folder / (name + ".json") for name in names}
    run = ["run", "--model", model, "--device", device, "--max-tokens", "2", "--max-batch", "4", "--max-sequence",
           "128", "--host-capacity", "1GiB", "--cycles", "1", "--no-scribble", "--manifest", str(files["good"])]
    subprocess.run([tool] + run, check=True, stdout=subprocess.DEVNULL)
    text = files["good"].read_text()
    files["same"].write_text(text)
    files["short"].write_text(text[:len(text) // 2])
    moved = json.loads(text)
    moved["graphs"][0]["pointers"][0]["offset"] += 16
    files["moved"].write_text(json.dumps(moved))
    renamed = json.loads(text)
    for span in renamed["spans"][:3]:
        span["name"] = "renamed " + span["name"]
    renamed["spans"][0]["name"] = "renamed"
    files["renamed"].write_text(json.dumps(renamed))
    return files


def check_bench(tool, device, path):
    """The figures are the machine's; what is checked is that they are there and that none is absurd."""
    done = subprocess.run([tool, "bench", "audit", "--device", device, "--nodes", "50", "--repeats", "3", "--json",
                           str(path)], capture_output=True, text=True)
    graphs = json.loads(path.read_text())["graphs"] if path.exists() else []
    sound = (done.returncode in (0, 1) and [g["graph"] for g in graphs] == ["plain", "gemm", "wide"] and
             all(g["nodes"] >= 50 and g["pointers"] >= 150 and g["audit_ms_per_1000_nodes"] > 0 for g in graphs))
    return [] if sound else [f"bench audit: exit status {done.returncode}: {done.stdout}{done.stderr}{graphs}"]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("holdfast")
    p.add_argument("model")
    p.add_argument("--device", default="host")
    args = p.parse_args()
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        files = write_files(args.holdfast, args.model, args.device, pathlib.Path(folder))
        for name, (arguments, status, present, absent) in cases(files, args.model, args.device).items():
            done = subprocess.run([args.holdfast] + arguments, capture_output=True, text=True, errors="replace")
            said = done.stdout + done.stderr
            one_line = status != 2 or len(done.stderr.strip().splitlines()) == 1
            if done.returncode != status or present not in said or absent in said or not one_line:
                failures.append(f"{name}: exit status {done.returncode} instead of {status}; it says\n{said[:2000]}")
        if "digraph" not in files["dot"].read_text():
            failures.append("dot: wrote no graph")
        failures += check_bench(args.holdfast, args.device, files["bench"])
    print("\n".join(failures) or "all passed")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
