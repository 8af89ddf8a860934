"""Verifies that a build can be installed and used: tests/outside is configured, built and run from the installed tree.

usage: outside_project_test.py BUILD_FOLDER WORK_FOLDER [--build-only]

BUILD_FOLDER is a finished build; compilers and flags are taken from its cache. WORK_FOLDER is made anew. With
--build-only nothing is tested: WORK_FOLDER/build then holds the outside program (for the GPU bundle).
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

import installed_tree
import outside_program_test

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Failed(Exception):
    """A command that had to succeed did not; holds its output."""


def must(command):
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                           errors="replace", check=False)
    if ended.returncode != 0:
        raise Failed(f"{' '.join(map(str, command))}\nexit status {ended.returncode}\n{ended.stdout}")
    return ended.stdout


def cache_of(build):
    """The variables of a build's CMakeCache.txt."""
    text = (build / "CMakeCache.txt").read_text(encoding="utf-8")
    return dict(re.findall(r"^([\w.-]+):\w+=(.*)$", text, re.MULTILINE))


def same_tools(cache):
    """Options that make another project use this build's compilers, launchers and flags."""
    kept = ["CMAKE_BUILD_TYPE", "CMAKE_CXX_COMPILER", "CMAKE_CXX_COMPILER_LAUNCHER", "CMAKE_CUDA_COMPILER_LAUNCHER",
            "CMAKE_CXX_FLAGS", "CMAKE_CXX_FLAGS_RELWITHDEBINFO", "CMAKE_MAKE_PROGRAM"]
    options = [f"-D{name}={cache[name]}" for name in kept if cache.get(name)]
    if cache.get("HOLDFAST_NVCC", "").startswith("/"):
        options += [f"-DCMAKE_CUDA_COMPILER={cache['HOLDFAST_NVCC']}"]
    return ["-G", cache["CMAKE_GENERATOR"], *options]


class Outside:
    """The installed tree and the projects that use it, all under one folder."""

    def __init__(self, build, work):
        self.build = build
        self.cache = cache_of(build)
        self.cmake = self.cache.get("CMAKE_COMMAND", "cmake")
        self.work = work
        self.prefix = work / "prefix"

    def install(self):
        """Installs, then moves the tree: nothing in it may know where it was put first."""
        shutil.rmtree(self.work, ignore_errors=True)
        staging = self.work / "staging"
        must([self.cmake, "--install", self.build, "--prefix", staging])
        os.rename(staging, self.prefix)

    def configure(self, source, into, *options):
        return must([self.cmake, "-S", source, "-B", self.work / into, f"-DCMAKE_PREFIX_PATH={self.prefix}",
                     *options])

    def make(self, source, into):
        self.configure(source, into, *same_tools(self.cache))
        must([self.cmake, "--build", self.work / into])

    def refuses(self, expected, *options):
        """None if configuring fails and says `expected`; else what happened."""
        folder = "refused" + "".join(options).replace("=", "-")
        try:
            return "it was accepted\n" + self.configure(ROOT / "tests/outside/refused", folder, *options)
        except Failed as failed:
            said = " ".join(str(failed).split())  # CMake breaks lines where it likes
            return None if expected in said else f"does not say '{expected}'\n{failed}"


def attempt(action, *arguments):
    try:
        action(*arguments)
        return None
    except Failed as failed:
        return str(failed)


def check(outside):
    """(name of the case, what is wrong or None), one by one; ends early where the rest cannot be tried."""
    wrong = attempt(outside.install)
    yield "the build is installed", wrong
    if wrong is not None:
        return
    yield from installed_tree.check(outside.prefix, [ROOT, outside.build, outside.work / "staging"])
    yield "a version that is not there is refused", outside.refuses(
        'compatible with requested version "9.0"', "-DVERSION=9.0")
    yield "a component that is not there is refused by name", outside.refuses(
        "holdfast has no component 'nonsense' here; it has: device, allocator,", "-DCOMPONENT=nonsense")

    wrong = attempt(outside.make, ROOT / "tests/outside", "build")
    yield "the outside project builds", wrong
    if wrong is None:
        yield "a program of one layer runs", attempt(must, [outside.work / "build/allocator_only"])
        os.environ["HOLDFAST_SCRIBBLE"] = str(outside.prefix / "libexec/holdfast/holdfast-scribble")
        yield from outside_program_test.check(str(outside.work / "build/outside_test"), "host")
        yield "holdfast check holds on the outside plug-in", attempt(
            must, [outside.prefix / "bin/holdfast", "check", "--device", "host", "--plugin",
                   outside.work / "build/heat_plugin.so"])
    wrong = attempt(outside.make, ROOT / "examples/quickstart", "quickstart")
    yield "the quick start builds as README.md says", wrong
    if wrong is None:
        yield "and runs", attempt(must, [outside.work / "quickstart/quickstart"])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--build-only", action="store_true")
    arguments = parser.parse_args()
    outside = Outside(arguments.build.resolve(), arguments.work.resolve())
    if not arguments.build_only:
        return outside_program_test.report(check(outside))
    wrong = attempt(outside.install) or attempt(outside.make, ROOT / "tests/outside", "build")
    if wrong is not None:
        print(wrong, file=sys.stderr)
    return 0 if wrong is None else 1


if __name__ == "__main__":
    sys.exit(main())
