"""Verifies that each case of must_not_compile.cc is refused by the compiler, and the file without a case is not.

usage: must_not_compile_test.py COMPILER ROOT
"""
import concurrent.futures
import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(__file__).with_name("must_not_compile.cc")


def compiles(compiler, root, case):
    command = [compiler, "-std=c++20", "-fsyntax-only", f"-I{root}", str(SOURCE)] + ([f"-D{case}"] if case else [])
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def main():
    compiler, root = sys.argv[1:]
    cases = re.findall(r"defined\((CASE_\w+)\)", SOURCE.read_text(encoding="utf-8"))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        accepted = list(pool.map(lambda case: compiles(compiler, root, case), ["", *cases]))
    failed = 0
    for name, ok in zip(["", *cases], accepted):
        right = ok == (name == "")
        failed += not right
        print(f"{'ok     ' if right else 'FAILED '} {name or 'without a case'} {'compiles' if ok else 'is refused'}")
    print(f"{len(accepted) - failed} passed, {failed} failed")
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
