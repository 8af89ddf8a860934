"""What must hold of an installed tree, whatever uses it: its headers are whole, its CMake files know no place."""
import re

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
            if not ours and not included.startswith("absl/"):
                wrong.append(f"{name}: includes {included}")
        if PRIVATE.search(text.split("#ifndef")[0]) or re.match(r"holdfast/device/(cuda|host)/", str(name)):
            wrong.append(f"{name}: is private")
    if len(headers) < 50:
        wrong.append(f"{len(headers)} headers are too few")
    return wrong


def package_wrong(prefix, places):
    """Lines about CMake files that name a folder of this machine, or pass our own flags on."""
    wrong = []
    for file in sorted((prefix / "lib").rglob("*.cmake")):
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
