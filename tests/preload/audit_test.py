"""Verifies libholdfast_preload.so on programs that know nothing of it, over a driver without a GPU: what is planted is named,
what is sound is not, and no program is changed by it.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

# case: (kind, words the finding's text holds), or None for a program without findings
CASES = {
    "clean": None,
    "freed_input": ("freed", ["graph 1: node 0 (kernel scale): parameter 1 + 0", "#1 cuMemAlloc 4.0 MiB",
                              "freed by cuMemFree after the capture, while the graph lives"]),
    "freed_before_capture": ("freed", ["#1 cuMemAlloc", "before the capture"]),
    "freed_or_end": ("freed", ["#2 cuMemAlloc", "before the capture", "unless it is meant as the end of #1"]),
    "freed_before_instantiate": ("freed", ["#1 cuMemAlloc", "cuMemFree after the capture"]),
    "reused": ("freed", ["#1 cuMemAlloc", "reallocated as #3 cuMemAlloc"]),
    "reused_before_instantiate": ("freed", ["its address given away", "reallocated as #3"]),
    "workspace_grown": ("workspace grown", ["#2 cuMemAlloc 2.0 MiB", "#3 cuMemAlloc 6.0 MiB", "took its place"]),
    "dead_pool": ("dead pool", ["#1 cuMemAllocFromPoolAsync", "its pool destroyed"]),
    "other_graphs_pool": ("dead pool", ["graph 2", "#2 cuMemAlloc", "part of the pool of capture 1"]),
    "unmapped": ("freed", ["#2 cuMemMap", "+ 128", "cuMemUnmap"]),
    "remapped": ("freed", ["#1 cuMemMap", "reallocated as #3 cuMemMap"]),
    "pinned": ("freed", ["copy source", "#1 cuMemHostAlloc", "cuMemFreeHost"]),
    "managed": ("freed", ["fill destination", "#1 cuMemAllocManaged"]),
    "asynchronous": ("freed", ["#1 cuMemAllocAsync", "cuMemFreeAsync"]),
    "allocation_nodes": None,
    "built_by_hand": ("freed", ["#1 cuMemAlloc", "before the graph was instantiated"]),
    "updated": ("freed", ["#2 cuMemAlloc"]),
    "node_changed": None,
    "refused_free": None,
    "teardown_free": None,
    "mid_capture": None,
    "context_reset": None,
    "quick_exit": ("freed", ["#1 cuMemAlloc"]),
    "blocks": ("freed", ["block 'input' 1.0 MiB", "reallocated as #4 block 'other'"]),
    "launch_is_bare": None,
}
EXIT = {"mid_capture": 5}

failures = []


def expect(true, what):
    if not true:
        failures.append(what)
        print("FAILED:", what)


class Runner:
    def __init__(self, options, folder):
        self.options = options
        self.folder = folder
        self.count = 0

    def environment(self, driver, extra):
        kept = {k: v for k, v in os.environ.items() if not k.startswith("HOLDFAST_") and k != "LD_PRELOAD"}
        if driver:
            kept["LD_LIBRARY_PATH"] = self.options.driver
        return {**kept, **extra}

    def preloaded(self, command, driver=True, report=True, **extra):
        """(CompletedProcess, report or None)"""
        self.count += 1
        path = pathlib.Path(self.folder, f"report{self.count}.json")
        if report:
            extra["HOLDFAST_PRELOAD_REPORT"] = str(path)
        extra["LD_PRELOAD"] = self.options.library
        done = subprocess.run(command, env=self.environment(driver, extra), capture_output=True, text=True, timeout=60,
                              check=False)
        return done, json.loads(path.read_text()) if path.exists() else None

    def tool(self, arguments, driver=True):
        return subprocess.run([self.options.tool, "audit-run", *arguments], env=self.environment(driver, {}),
                              capture_output=True, text=True, timeout=60, check=False)


def check_case(run, name, expected, program, way):
    what = f"{name} ({way})"
    done, report = run.preloaded([program, name])
    expect(done.returncode == EXIT.get(name, 0), f"{what}: exit status {done.returncode}: {done.stderr}")
    expect(done.stderr == "", f"{what}: said {done.stderr}")
    expect(report is not None, f"{what}: no report")
    if report is None:
        return
    expect(report["format"] == "holdfast preload report" and report["version"] == 1, f"{what}: format")
    expect(not report["errors"], f"{what}: errors {report['errors']}")
    texts = [finding["text"] for finding in report["findings"]]
    if expected is None:
        expect(not texts, f"{what}: found {texts}")
        return
    kind, words = expected
    expect(len(texts) == 1, f"{what}: wanted one finding, got {texts}")
    for finding in report["findings"]:
        expect(finding["kind"] == kind, f"{what}: kind {finding['kind']}")
        for word in words:
            expect(word in finding["text"], f"{what}: no '{word}' in '{finding['text']}'")


def check_cases(run):
    for way, program in (("linked", run.options.linked), ("looked up", run.options.looked_up)):
        for name, expected in CASES.items():
            check_case(run, name, expected, program, way)
    _, report = run.preloaded([run.options.looked_up, "mid_capture"])
    expect(report["open_captures"] == 1 and not report["graphs"], "mid_capture: the open capture is not told")
    done, _ = run.preloaded([run.options.looked_up, "mid_capture"], report=False)
    expect(len(done.stderr.strip().splitlines()) == 2 and "still open" in done.stderr, f"mid_capture: {done.stderr}")
    _, report = run.preloaded([run.options.looked_up, "node_changed"])
    expect(report["graphs"][0]["changes_of_single_nodes"] == 1, "node_changed: the change is not told")
    _, report = run.preloaded([run.options.looked_up, "context_reset"])
    expect(report["contexts_destroyed"] == 1, "context_reset: not told")


def check_negative_controls(run):
    """Without the record nothing is found: the findings above come from it."""
    for name in ("freed_input", "workspace_grown", "dead_pool", "reused"):
        done, report = run.preloaded([run.options.looked_up, name], HOLDFAST_PRELOAD_RECORD="0")
        expect(done.returncode == 0 and report["recording"] is False, f"{name}: recording is still on")
        expect(report["graphs"] and not report["findings"], f"{name}: found without a record")
    _, report = run.preloaded([run.options.looked_up, "remapped"], HOLDFAST_PRELOAD_ALLOW_REMAP="1")
    expect(not report["findings"] and len(report["remapped"]) == 1, "remapped: not allowed by the switch")


def check_exit_status(run):
    for program in (run.options.linked, run.options.looked_up):
        for name, status in (("freed_input", 1), ("quick_exit", 1), ("clean", 0), ("mid_capture", 5)):
            done, _ = run.preloaded([program, name], HOLDFAST_PRELOAD_FAIL="1")
            expect(done.returncode == status, f"{name} with FAIL=1: exit status {done.returncode}")
            if name == "freed_input":
                expect(done.stdout == "done\n", f"output is lost: {done.stdout!r}")


def check_text(run):
    done, _ = run.preloaded([run.options.looked_up, "freed_input"], report=False)
    lines = done.stderr.splitlines()
    expect(len(lines) == 2 and "1 finding" in lines[0] and "freed: graph 1" in lines[1], f"text: {done.stderr}")
    done, _ = run.preloaded([run.options.looked_up, "freed_input"], report=False,
                            HOLDFAST_PRELOAD_REPORT="/nowhere/at/all")
    expect(done.returncode == 0 and len(done.stderr.splitlines()) == 1 and "cannot write" in done.stderr,
           f"a report that cannot be written: {done.stderr}")


def check_strangers(run):
    """Programs without CUDA, and one whose driver is not there."""
    strangers = [(["/bin/true"], 0, ""), (["/bin/sh", "-c", "echo hello; exit 3"], 3, "hello\n"),
                 ([sys.executable, "-c", "import ctypes, ssl, subprocess; "
                   "print(subprocess.run(['/bin/true'], check=True).returncode, ctypes.CDLL(None).dlsym is not None)"], 0,
                  "0 True\n")]
    for command, status, output in strangers:
        done, report = run.preloaded(command, driver=False, HOLDFAST_PRELOAD_FAIL="1")
        expect((done.returncode, done.stdout, done.stderr) == (status, output, ""), f"{command}: {done}")
        expect(report is None, f"{command}: a report about nothing")
    done, report = run.preloaded([run.options.looked_up, "clean"], driver=False)
    expect((done.returncode, done.stdout, done.stderr, report) == (0, "no driver\n", "", None), f"no driver: {done}")


def check_launcher(run):
    report = pathlib.Path(run.folder, "launched.json")
    report.write_text("stale")
    done = run.tool(["--report", str(report), "--", run.options.looked_up, "freed_input"])
    expect(done.returncode == 0 and done.stdout == "done\n", f"launcher: {done}")
    expect(json.loads(report.read_text())["findings"], "launcher: no findings in the report")
    expect("1 finding" in done.stderr and "freed: graph 1" in done.stderr, f"launcher says {done.stderr}")
    done = run.tool(["--fail", "--", run.options.looked_up, "freed_input"])
    expect(done.returncode == 1 and "1 finding" in done.stderr, f"launcher with --fail: {done}")
    done = run.tool(["--fail", "--", run.options.looked_up, "clean"])
    expect(done.returncode == 0 and "0 findings" in done.stderr, f"launcher, clean: {done}")
    done = run.tool(["--", run.options.looked_up, "mid_capture"])
    expect(done.returncode == 5 and "still open" in done.stderr, f"launcher, mid capture: {done}")
    done = run.tool(["--", "/bin/sh", "-c", "exit 7"], driver=False)
    expect(done.returncode == 7 and len(done.stderr.splitlines()) == 1 and "nothing was audited" in done.stderr,
           f"launcher without CUDA: {done}")
    done = run.tool(["--", "/bin/sh", "-c", "kill -TERM $$"], driver=False)
    expect(done.returncode == 143, f"launcher, killed: {done}")
    for arguments in (["--", "/no/such/program"], ["--no-such-flag", "--", "/bin/true"], [],
                      ["--report", "/nowhere/at/all", "--", "/bin/true"]):
        done = run.tool(arguments)
        expect(done.returncode == 2 and len(done.stderr.splitlines()) == 1, f"launcher {arguments}: {done}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("library", "driver", "linked", "looked-up", "tool"):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = Runner(options, folder)
        for check in (check_cases, check_negative_controls, check_exit_status, check_text, check_strangers):
            check(run)
        if pathlib.Path(options.tool).exists():
            check_launcher(run)
        else:
            expect(False, f"no launcher at {options.tool}")
    print(f"{len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
