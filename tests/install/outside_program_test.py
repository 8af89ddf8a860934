"""Verifies the outside program: it holds fast, and each planted mistake fails by name.

usage: outside_program_test.py PROGRAM [--device D]
"""
import argparse
import re
import subprocess
import sys

# What --plant takes, and what a program with that mistake must print: the proof that fails, and no other.
PLANTS = {
    "stale-pointer": "pointers",
    "unsteady-step": "pointers",
    "stale-scratch": "outputs",
    "pads-count": "outputs",
}


def run(command):
    ended = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=240, check=False)
    return ended.returncode, ended.stdout + ended.stderr


def check(program, device):
    """(name of the case, what is wrong or None), one by one."""
    status, output = run([program, "--device", device])
    yield "the outside program holds fast", None if status == 0 else output
    for plant, proof in PLANTS.items():
        status, output = run([program, "--device", device, "--plant", plant])
        failing = re.findall(r"^fails +(\S+)", output, re.MULTILINE)
        wrong = None
        if status != 1 or failing != [proof]:
            wrong = f"exit status {status}, failing: {failing} instead of [{proof}]\n{output}"
        yield f"planted {plant} makes {proof} fail, and nothing else", wrong
    status, output = run([program, "--device", device, "--plant", "nonsense"])
    one_line = status == 2 and len(output.splitlines()) == 1
    yield "an unknown plant is one line and status 2", None if one_line else f"exit status {status}\n{output}"


def report(cases):
    """Prints a line a case and the count; the exit status."""
    passed = failed = 0
    for name, wrong in cases:
        print(f"{'ok     ' if wrong is None else 'FAILED '} {name}", flush=True)
        if wrong is not None:
            print(wrong)
        passed, failed = passed + (wrong is None), failed + (wrong is not None)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--device", default="host")
    arguments = parser.parse_args()
    sys.exit(report(check(arguments.program, arguments.device)))
