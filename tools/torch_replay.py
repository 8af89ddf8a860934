#!/usr/bin/env python3
"""What torch.cuda.CUDAGraph.replay() costs the calling thread, measured as `holdfast bench replay` does.

  python3 tools/torch_replay.py --out torch.json && holdfast bench replay --torch torch.json

Needs PyTorch with CUDA. Prints the same figures that it writes.
"""

import argparse
import json
import time

import torch

WARM = 1000
LAUNCHES_BETWEEN_WAITS = 16


def capture(nodes):
    """A graph of `nodes` kernels over 64 floats, warmed up as PyTorch asks for."""
    data = torch.zeros(64, device="cuda")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        data.add_(1)
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(nodes):
            data.add_(1)
    return graph, data


def times_ns(graph, launches):
    times = []
    replay, clock = graph.replay, time.perf_counter_ns
    for i in range(launches):
        if i % LAUNCHES_BETWEEN_WAITS == 0:
            torch.cuda.synchronize()
        start = clock()
        replay()
        times.append(clock() - start)
    torch.cuda.synchronize()
    return sorted(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--launches", type=int, default=100_000)
    parser.add_argument("--nodes", type=int, nargs="+", default=[1, 100, 1000])
    parser.add_argument("--out", required=True, help="JSON file to write")
    options = parser.parse_args()
    if options.launches < 1 or min(options.nodes) < 1:
        parser.error("--launches and --nodes must be positive")
    rows = []
    for nodes in options.nodes:
        graph, data = capture(nodes)
        times_ns(graph, WARM)
        times = times_ns(graph, options.launches)
        row = {"nodes": nodes, "p50_us": times[int(0.5 * (len(times) - 1))] / 1e3,
               "p99_us": times[int(0.99 * (len(times) - 1))] / 1e3}
        print(f"{nodes:5d} nodes  p50 {row['p50_us']:.3f} us  p99 {row['p99_us']:.3f} us", flush=True)
        rows.append(row)
        del graph, data
    report = {"name": "torch replay", "torch": torch.__version__, "device": torch.cuda.get_device_name(),
              "launches": options.launches, "rows": rows}
    with open(options.out, "w", encoding="utf-8") as file:
        json.dump(report, file, indent=2)
        file.write("\n")


if __name__ == "__main__":
    main()
