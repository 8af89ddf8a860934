"""What must hold of an installed tree, whatever uses it: its headers are whole, its CMake files know no place.

Run by itself it is its own negative control.
"""
import pathlib
import re
import sys
import tempfile

FEWEST_HEADERS = 50  # fewer: the rule for public headers has gone wrong

INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
PRIVATE = re.compile(r"Private[\s/]+to\b")
OUR_FLAGS = re.compile(r"-Werror|-Wall|-march=|-fno-omit-frame-pointer")


def headers_wrong(prefix):
    """Lines about includes that lead out of the tree, and private headers that are in it."""
    include = prefix / "include"
    wrong = []
    headers = sorted(include.rglob("*.h"))
    for header in headers:
        text = header.read_text(encoding="utf-8")
        name = header.relative_to(include)
        for included in INCLUDE.findall(text):
            ours = included.startswith("holdfast/")
            if ours and not (include / included).is_file():
                wrong.append(f"{name}: includes {included}, which is not installed")
            if not ours and not included.startswith(("absl/", "gmock/")):
                wrong.append(f"{name}: includes {included}")
        if PRIVATE.search(text.split("#ifndef")[0]) or re.match(r"holdfast/device/(cuda|host)/", str(name)):
            wrong.append(f"{name}: is private")
    if len(headers) < FEWEST_HEADERS:
        wrong.append(f"{len(headers)} headers are too few")
    return wrong


def package_wrong(prefix, places):
    """Lines about CMake files that name a folder of this machine, or pass our own flags on."""
    wrong = []
    for file in sorted(prefix.rglob("*.cmake")):
        text = file.read_text(encoding="utf-8")
        wrong += [f"{file.name}: names {place}" for place in places if str(place) in text]
        wrong += [f"{file.name}: passes {flag} on" for flag in OUR_FLAGS.findall(text)]
    return wrong


def check(prefix, places):
    """(name of the case, what is wrong or None); `places` are folders that nothing may name."""
    yield "every include of an installed header is installed", "\n".join(headers_wrong(prefix)) or None
    yield "the package names no folder and passes no flags of ours on", (
        "\n".join(package_wrong(prefix, places)) or None)
    programs = [p for p in ("bin/holdfast", "share/doc/holdfast/LICENSE") if not (prefix / p).is_file()]
    yield "program and documents are there", f"missing: {programs}" if programs else None


def plant(root, tree):
    for name, text in tree.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


SOUND = {f"include/holdfast/allocator/a{i}.h": '// A.\n#ifndef A\n#include "absl/a.h"\n' for i in range(FEWEST_HEADERS)}
SOUND |= {"include/holdfast/graphs/b.h": '#ifndef B\n#include "holdfast/allocator/a1.h"\n',
          "lib/cmake/holdfast/holdfast-graphs.cmake": 'INTERFACE_COMPILE_DEFINITIONS "HOLDFAST_WITH_CUDA=1"\n',
          "bin/holdfast": "", "share/doc/holdfast/LICENSE": ""}
FAULTS = [
    ({"include/holdfast/graphs/c.h": '#ifndef C\n#include "holdfast/allocator/gone.h"\n'}, "gone.h, which is not"),
    ({"include/holdfast/graphs/c.h": '#ifndef C\n#include "allocator/a1.h"\n'}, "includes allocator/a1.h"),
    ({"include/holdfast/graphs/c.h": "// Private\n// to graphs/.\n#ifndef C\n"}, "c.h: is private"),
    ({"include/holdfast/device/cuda/c.h": "#ifndef C\n"}, "c.h: is private"),
    ({"lib/cmake/holdfast/x.cmake": 'set(a "/build/dev/lib")\n'}, "x.cmake: names /build/dev"),
    ({"lib/cmake/holdfast/x.cmake": 'OPTIONS "-Wall;-Werror"\n'}, "x.cmake: passes -Werror on"),
]


def self_test():
    """Each fault, planted into a sound tree, must be found, and nothing in the sound one."""
    for added, expected in [({}, None)] + FAULTS:
        with tempfile.TemporaryDirectory() as folder:
            prefix = pathlib.Path(folder)
            plant(prefix, SOUND | added)
            found = [wrong for _, wrong in check(prefix, ["/build/dev"]) if wrong is not None]
        if expected is None and found:
            yield f"false alarm: {found}"
        elif expected is not None and not any(expected in wrong for wrong in found):
            yield f"planted in {list(added)}: wanted '{expected}', got {found}"


if __name__ == "__main__":
    failures = list(self_test())
    print("\n".join(failures + [f"{len(failures)} found"]))
    sys.exit(1 if failures else 0)
