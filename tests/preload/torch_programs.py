#!/usr/bin/env python3
"""Verifies the preload audit on PyTorch programs, on a GPU: what is planted is named, a clean program has no findings, and
a replay costs what it costs without the library.

  python3 tests/preload/torch_programs.py --library libholdfast_preload.so [--out FILE] [--skip-overhead]

Needs PyTorch with CUDA and the library, nothing else. Each program runs in a process of its own. Prints JSON; exit status 1
if something is not as it must be.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve()
TOOLS = HERE.parent.parent.parent / "tools"
MIB = 1 << 20
WORDS = 32 * MIB // 4  # large tensors have segments of their own
SMALL = 1 * MIB // 4  # small ones are cut from shared segments
BOUND = 0.01


# -- The programs. Each returns the names of what must be found; blocks is the helper, or None.


def capture(torch, step):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        step()
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    torch.cuda.synchronize()
    return graph


def clean(torch, blocks):
    """A small network, captured at three batch sizes, replayed; eager work and a change of shapes between."""
    model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.GELU(), torch.nn.LayerNorm(2048),
                                torch.nn.Linear(2048, 512)).cuda().half()
    kept = []
    pool = None
    for batch in (64, 16, 1):
        x = torch.randn(batch, 512, device="cuda", dtype=torch.half)
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream), torch.no_grad():
            for _ in range(3):
                model(x)
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.no_grad(), torch.cuda.graph(graph, pool=pool):
            y = torch.softmax(model(x).float(), dim=-1).topk(4).values.sum()
        pool = graph.pool()
        kept.append((graph, x, y))
    for _ in range(5):
        for graph, x, y in kept:
            x.copy_(torch.randn_like(x))
            graph.replay()
        junk = [torch.randn(WORDS, device="cuda") for _ in range(3)]
        del junk
        torch.cuda.empty_cache()
    torch.cuda.synchronize()
    assert all(torch.isfinite(y).item() for _, _, y in kept)
    return kept, model  # without the model its weights would be freed, and rightly found


def lost_weights(torch, blocks):
    """The graphs are kept, the model they were captured from is not."""
    kept, _ = clean(torch, blocks)
    if not blocks:
        x = torch.ones(WORDS, device="cuda")  # small weights share segments: only blocks tell
        kept.append((capture(torch, lambda: x.mul_(2)), None, None))
        del x
        torch.cuda.empty_cache()
    return kept


def freed_input(torch, blocks):
    size = SMALL if blocks else WORDS
    x, y = torch.ones(size, device="cuda"), torch.zeros(size, device="cuda")
    if blocks:
        blocks.name(x, "input")
    graph = capture(torch, lambda: torch.add(x, 1, out=y))
    graph.replay()
    torch.cuda.synchronize()
    del x
    if blocks:
        blocks.sync()
    else:
        torch.cuda.empty_cache()
    return graph, y


def workspace_grown(torch, blocks):
    size = SMALL if blocks else WORDS
    x, y = torch.ones(size, device="cuda"), torch.zeros(size, device="cuda")
    work = {"space": torch.zeros(size, device="cuda")}
    if blocks:
        blocks.name(work["space"], "workspace")

    def step():
        torch.mul(x, 2, out=work["space"])
        torch.add(work["space"], 1, out=y)

    graph = capture(torch, step)
    graph.replay()
    torch.cuda.synchronize()
    work["space"] = torch.zeros(2 * size, device="cuda")  # a larger batch came
    if blocks:
        blocks.sync()
    else:
        torch.cuda.empty_cache()
    return graph, x, y, work


def dead_pool(torch, blocks):
    x, z = torch.ones(WORDS, device="cuda"), torch.zeros(WORDS, device="cuda")
    made = {}
    first = torch.cuda.CUDAGraph()
    with torch.cuda.graph(first):
        made["hidden"] = x * 2  # in the private pool of the first graph
    first.replay()
    second = capture(torch, lambda: torch.add(made["hidden"], 1, out=z))
    second.replay()
    torch.cuda.synchronize()
    made.clear()
    first.reset()
    del first
    torch.cuda.empty_cache()
    return second, x, z


PROGRAMS = {"clean": (clean, None), "freed_input": (freed_input, "freed"),
            "workspace_grown": (workspace_grown, "workspace grown"), "dead_pool": (dead_pool, "dead pool"),
            "lost_weights": (lost_weights, "freed")}


def overhead(torch):
    """Median time of a replay of 200 small kernels: as seen by the host, and until it is done."""
    data = torch.zeros(64, device="cuda")

    def step():
        for _ in range(200):
            data.add_(1)

    graph = capture(torch, step)
    call, done = [], []
    for i in range(4200):
        torch.cuda.synchronize()
        begin = time.perf_counter_ns()
        graph.replay()
        called = time.perf_counter_ns()
        torch.cuda.synchronize()
        end = time.perf_counter_ns()
        if i >= 200:
            call.append(called - begin)
            done.append(end - begin)
    return {"call_us": statistics.median(call) / 1e3, "done_us": statistics.median(done) / 1e3}


def child(name, use_blocks):
    import torch
    blocks = None
    if use_blocks:
        sys.path.insert(0, str(TOOLS))
        import torch_blocks as blocks
        if not blocks.watch():
            raise SystemExit("the library is not preloaded")
    if name == "overhead":
        print(json.dumps(overhead(torch)))
        return
    kept = PROGRAMS[name][0](torch, blocks)
    torch.cuda.synchronize()
    if blocks:
        blocks.stop()  # what goes from here on is teardown
    print(json.dumps({"torch": torch.__version__, "device": torch.cuda.get_device_name(), "kept": len(kept)}))
    sys.stdout.flush()
    os._exit(0)


# -- The runs.


def run(name, library, extra=None, blocks=False):
    """(what the program printed, its report or None, exit status, stderr)"""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "report.json")
        environment = dict(os.environ, HOLDFAST_PRELOAD_REPORT=str(report), **(extra or {}))
        if library:
            environment["LD_PRELOAD"] = str(library)
        command = [sys.executable, str(HERE), "--child", name] + (["--blocks"] if blocks else [])
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
        found = json.loads(report.read_text()) if report.exists() else None
        lines = done.stdout.strip().splitlines()
        said = json.loads(lines[-1]) if lines and lines[-1].startswith("{") else None
        return said, found, done.returncode, done.stderr[-2000:]


def judge(name, expected, result, blocks):
    said, report, status, errors = result
    row = {"program": name, "blocks": blocks, "exit": status, "said": said, "wrong": []}
    if status != 0 or said is None:
        row["wrong"].append(f"the program failed: {errors}")
    if report is None:
        row["wrong"].append("no report")
        return row
    kinds = sorted({f["kind"] for f in report["findings"]})
    row.update(graphs=report["graphs"], allocations=report["allocations"], driver=report["driver"],
               errors=report["errors"], findings=[f["text"] for f in report["findings"]], kinds=kinds)
    if report["errors"]:
        row["wrong"].append("errors in the report")
    if not report["graphs"] or any(g["nodes"] == 0 for g in report["graphs"]):
        row["wrong"].append("a graph was not audited")
    if expected is None and kinds:
        row["wrong"].append("findings in a clean program")
    if expected is not None and expected not in kinds:
        row["wrong"].append(f"no finding of kind '{expected}'")
    return row


def measure(library, rounds):
    """Pairs of processes, without and with the library, in alternating order."""
    times = {"without": [], "with": []}
    for i in range(rounds):
        for which in (("without", "with") if i % 2 == 0 else ("with", "without")):
            said, _, status, errors = run("overhead", library if which == "with" else None)
            if status != 0 or said is None:
                return {"wrong": [f"the measurement failed: {errors}"]}
            times[which].append(said)
    row = {"rounds": rounds, "times": times, "bound": BOUND, "wrong": []}
    for figure in ("call_us", "done_us"):
        medians = {which: statistics.median(t[figure] for t in times[which]) for which in times}
        change = medians["with"] / medians["without"] - 1
        row[figure] = {**medians, "change": change}
    if row["done_us"]["change"] > BOUND:
        row["wrong"].append("a replay takes longer with the library")
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--library")
    parser.add_argument("--out")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--skip-overhead", action="store_true")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--blocks", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child(options.child, options.blocks)
    if not options.library or not pathlib.Path(options.library).is_file():
        parser.error("--library names the shared object")
    library = pathlib.Path(options.library).resolve()
    rows = []
    for name, (_, expected) in PROGRAMS.items():
        for blocks in (False, True):
            rows.append(judge(name, expected, run(name, library, blocks=blocks), blocks))
    # Negative control: without the record nothing can be found.
    blind = judge("freed_input", None, run("freed_input", library, {"HOLDFAST_PRELOAD_RECORD": "0"}), False)
    blind["program"] = "freed_input, not recorded"
    rows.append(blind)
    # A clean exit with findings becomes one without, if asked for. (os._exit is a clean exit.)
    status = run("freed_input", library, {"HOLDFAST_PRELOAD_FAIL": "1"})[2]
    result = {"programs": rows, "fail_status": status}
    wrong = [f"{row['program']}{' with blocks' if row['blocks'] else ''}: {text}"
             for row in rows for text in row["wrong"]]
    if status != 1:
        wrong.append(f"HOLDFAST_PRELOAD_FAIL=1 ended with {status}")
    if not options.skip_overhead:
        result["overhead"] = measure(library, options.rounds)
        wrong += [f"overhead: {text}" for text in result["overhead"]["wrong"]]
    result["wrong"] = wrong
    text = json.dumps(result, indent=1)
    print(text)
    if options.out:
        pathlib.Path(options.out).write_text(text + "\n", encoding="utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
