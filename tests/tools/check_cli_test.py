#!/usr/bin/env python3
"""`holdfast check` as a stranger meets it: the demo model and a sound plug-in pass the whole battery, every bad plug-in
gets one clear line and the rest goes on, reports are well-formed, and wrong input is told apart from failed proofs.

  check_cli_test.py HOLDFAST MODEL PLUGINS [--device SPEC] [--only NAME] [--reduced]
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml

PROOFS = ["addresses", "kept-bytes", "dropped-bytes", "failures", "no-early-unmap", "pointers", "outputs",
          "freed-is-free", "ledger", "reservations", "balance"]


class Test:
    def __init__(self, args, folder):
        self.args, self.folder, self.failed = args, pathlib.Path(folder), 0

    def run(self, *words, device=None, crashes=False):
        command = [self.args.holdfast, "check", "--device", device or self.args.device, *map(str, words)]
        env = dict(os.environ)
        if crashes:  # as a signal, and not as a report of the address sanitizer's
            env["ASAN_OPTIONS"] = ":".join(filter(None, [env.get("ASAN_OPTIONS"), "handle_segv=0"]))
        return subprocess.run(command, capture_output=True, text=True, timeout=600, env=env)

    def plugin(self, name, *words):
        # Only the good one has kernels for a GPU.
        device = None if name == "good" else "host"
        return self.run("--plugin", pathlib.Path(self.args.plugins) / f"{name}.so", *words, device=device,
                        crashes=name.startswith("crash"))

    def expect(self, what, true, done=None):
        if not true:
            self.failed += 1
            print(f"FAIL {what}")
            if done is not None:
                print(f"  status {done.returncode}\n  {done.stdout}\n  {done.stderr}")

    def bad_input(self, what, done, text):
        """Exit status 2, nothing on stdout, one line on stderr that holds the text."""
        lines = done.stderr.strip().splitlines()
        self.expect(what, done.returncode == 2 and not done.stdout and len(lines) == 1 and text in lines[0], done)

    def fails(self, what, done, text, others=()):
        """Exit status 1; one proof's line holds the text; these others hold all the same."""
        lines = done.stdout.splitlines()
        self.expect(what, done.returncode == 1 and lines and lines[-1].startswith("FAIL: "), done)
        self.expect(f"{what}: names it", any(l.startswith("fails") and text in l for l in lines), done)
        for other in others:
            self.expect(f"{what}: {other} goes on",
                        any(l.split()[:2] == ["holds", other] for l in lines), done)


def check_reports(test, what, done, json_file, junit_file, skipped):
    """A passing run: every proof by name, every control bites or is skipped for a reason, both files say so."""
    test.expect(f"{what}: passes", done.returncode == 0 and done.stdout.splitlines()[-1] == "PASS", done)
    if done.returncode != 0:
        return
    report = json.loads(json_file.read_text())
    test.expect(f"{what}: every proof", [p["name"] for p in report["proofs"]] == PROOFS, done)
    test.expect(f"{what}: JSON says so", report["passed"] is True and report["complaints"] == [], done)
    for proof in report["proofs"]:
        good = proof["verdict"] == ("skipped" if proof["name"] in skipped else "holds")
        test.expect(f"{what}: {proof['name']} is {proof['verdict']}: {proof['detail']}", good)
    for control in report["controls"]:
        test.expect(f"{what}: {control}", control["verdict"] == "bites" or (
            control["verdict"] == "skipped" and control["detail"]))
    bitten = {c["aimed_at"] for c in report["controls"] if c["verdict"] == "bites"}
    test.expect(f"{what}: every proof has a control", bitten == set(PROOFS) - skipped, done)
    root = xml.parse(junit_file).getroot()
    names = [c.get("name") for c in root.iter("testcase")]
    test.expect(f"{what}: JUnit has them all",
                names == PROOFS + [c["name"] for c in report["controls"]] + ["battery"], done)
    test.expect(f"{what}: JUnit without failures", not list(root.iter("failure")), done)


def good_plugin(test):
    files = test.folder / "good.json", test.folder / "good.xml"
    done = test.plugin("good", "--failures", "6", "--cycles", "1", "--json", files[0], "--junit", files[1])
    check_reports(test, "good plug-in", done, *files, skipped=SKIPPED_BY_PLUGIN)


def model(test):
    files = test.folder / "model.json", test.folder / "model.xml"
    start = time.monotonic()
    few = ["--proofs", "kept-bytes,pointers", "--controls", "flipped-bit,stale-pointer"] if test.args.reduced else []
    done = test.run("--model", test.args.model, "--failures", "8", "--json", files[0], "--junit",
                    files[1], *few)
    print(f"model: {time.monotonic() - start:.1f} s")
    if few:
        test.expect("model: passes", done.returncode == 0 and "PASS" in done.stdout.splitlines(), done)
    else:
        check_reports(test, "model", done, *files, skipped={"reservations"})


def crashing_plugins(test):
    test.bad_input("crash-loading", test.plugin("crash-loading"), "signal 11 (SIGSEGV)")
    test.fails("crash-creating", test.plugin("crash-creating"), "making the subject: crashed with signal 11")
    test.fails("exits", test.plugin("exits"), "making the subject: ended with status 0, too early")
    few = "--proofs", "kept-bytes,pointers,outputs", "--controls", "flipped-bit"
    done = test.plugin("crash-on-pads", *few)
    test.fails("crash-on-pads", done, "outputs         crashed with signal 11 (SIGSEGV)", others=["kept-bytes", "pointers"])


def hanging_plugins(test):
    test.fails("hang-creating", test.plugin("hang-creating", "--deadline", "1.5"), "hangs: nothing for 1.5 s")
    few = "--proofs", "pointers,outputs", "--no-controls", "--deadline", "1.5"
    junit = test.folder / "hangs.xml"
    test.fails("hang-on-pads", test.plugin("hang-on-pads", *few, "--junit", junit),
               "outputs         hangs: nothing for 1.5 s", others=["pointers"])
    failed = {c.get("name") for c in xml.parse(junit).iter("testcase") if c.find("failure") is not None}
    test.expect("hang-on-pads in JUnit", failed == {"outputs", "battery"})


def lying_plugins(test):
    few = "--proofs", "pointers", "--no-controls"
    test.fails("lie-small", test.plugin("lie-small", *few), "behind the declared end")
    test.fails("foreign-step", test.plugin("foreign-step", *few), "pointers")
    test.fails("unsteady-output", test.plugin("unsteady-output", "--proofs", "outputs", "--no-controls"), "outputs")
    test.bad_input("lie-output", test.plugin("lie-output"), "lies outside span out")
    test.bad_input("lie-huge", test.plugin("lie-huge"), "larger than the device")
    test.bad_input("lie-struct", test.plugin("lie-struct"), "struct_bytes")
    test.bad_input("no-symbol", test.plugin("no-symbol"), "holdfast_plugin_v1")
    test.bad_input("other-version", test.plugin("other-version"), "another version")
    test.bad_input("null-table", test.plugin("null-table"), "returned null")
    test.bad_input("failing-step", test.plugin("failing-step"), "code 77")


def wrong_files(test):
    good = (pathlib.Path(test.args.plugins) / "good.so").read_bytes()
    for name, content, text in [("text", b"not a plug-in\n", "not an ELF file"), ("empty", b"", "not an ELF file"),
                                ("head", good[:100], "truncated"), ("half", good[:len(good) // 2], "truncated"),
                                ("short", good[:-8], "truncated")]:
        path = test.folder / f"{name}.so"
        path.write_bytes(content)
        test.bad_input(f"{name} file", test.run("--plugin", path), text)
    test.bad_input("missing file", test.run("--plugin", test.folder / "none.so"), "none.so")
    test.bad_input("folder", test.run("--plugin", test.folder), "no such file")
    test.bad_input("missing model", test.run("--model", test.folder / "none"), "none")
    test.bad_input("model that is none", test.run("--model", test.folder), "config.json")


def wrong_flags(test):
    plugin = pathlib.Path(test.args.plugins) / "good.so"
    test.bad_input("nothing", test.run(), "--plugin")
    test.bad_input("both", test.run("--plugin", plugin, "--model", test.args.model), "--plugin")
    for flags, text in [(["--proofs", "keptbytes"], "keptbytes"), (["--controls", "flip"], "flip"),
                        (["--cycles", "0"], "--cycles"), (["--failures", "-1"], "--failures"),
                        (["--deadline", "0"], "--deadline"), (["--deadline", "nan"], "--deadline"),
                        (["--no-such-flag"], "--no-such-flag")]:
        test.bad_input(" ".join(flags), test.run("--plugin", plugin, *flags), text)
    for device in "tpu", "cuda:99":
        test.bad_input(device, test.run("--plugin", plugin, device=device), device)
    done = test.plugin("good", "--proofs", "addresses", "--no-controls", "--json", test.folder / "none" / "a.json")
    test.bad_input("no folder for the report", done, "a.json")


def escapes(test):
    """A subject's name with everything that XML has to escape."""
    path = test.folder / "a&b <\"c'> \u00e9.so"
    path.write_bytes((pathlib.Path(test.args.plugins) / "good.so").read_bytes())
    junit, out = test.folder / "odd.xml", test.folder / "odd.json"
    done = test.run("--plugin", path, "--proofs", "addresses", "--no-controls", "--junit", junit, "--json", out)
    test.expect("odd name", done.returncode == 0, done)
    test.expect("odd name in JSON", json.loads(out.read_text())["subject"] == str(path))
    test.expect("odd name in XML", "a&b <\"c'>" in next(xml.parse(junit).iter("testcase")).get("classname"))


SKIPPED_BY_PLUGIN = {"reservations"}
ALL = [good_plugin, model, crashing_plugins, hanging_plugins, lying_plugins, wrong_files, wrong_flags, escapes]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("holdfast")
    parser.add_argument("model")
    parser.add_argument("plugins")
    parser.add_argument("--device", default="host")
    parser.add_argument("--only")
    parser.add_argument("--reduced", action="store_true", help="few proofs of the model: for slow builds")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        test = Test(args, folder)
        for part in ALL:
            if args.only in (None, part.__name__):
                start = time.monotonic()
                part(test)
                print(f"{part.__name__}: {time.monotonic() - start:.1f} s")
    print(f"{test.failed} failed")
    return 1 if test.failed else 0


if __name__ == "__main__":
    sys.exit(main())
