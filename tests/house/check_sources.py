"""Verifies the manner of the sources: header guards, ASCII, file length, no machine paths, no loose ends."""
import re

import tree

LONGEST_FILE = 600  # lines; more needs "long because" and a reason in the head comment
HEAD_LINES = 30

# Written so that this file does not match itself.
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|root|home/\w[\w.-]*)/")
LOOSE_END = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|X" + r"XX)\b")
TEXT_SUFFIXES = tree.SOURCE_SUFFIXES | {".md", ".json", ".txt", ".yml", ".yaml", ""}


def guard(name):
    """device/cuda/call.h -> HOLDFAST_DEVICE_CUDA_CALL_H_"""
    return "HOLDFAST_" + re.sub(r"\W", "_", str(name)).upper() + "_"


def check_guard(name, texts):
    code = [t.strip() for t in texts if t.strip() and not t.strip().startswith("//")]
    wanted = [f"#ifndef {guard(name)}", f"#define {guard(name)}"]
    return [] if code[:2] == wanted else [f"{name}:1: header guard is not {guard(name)}"]


def check_source(name, texts):
    found = []
    if len(texts) > LONGEST_FILE and not any("long because" in t for t in texts[:HEAD_LINES]):
        found.append(f"{name}:1: {len(texts)} lines; more than {LONGEST_FILE} need a 'long because'")
    for number, text in enumerate(texts, start=1):
        if not text.isascii():
            found.append(f"{name}:{number}: not ASCII")
        if LOOSE_END.search(text):
            found.append(f"{name}:{number}: loose end '{LOOSE_END.search(text).group()}'")
    if name.suffix in {".h", ".cuh"}:
        found += check_guard(name, texts)
    return found


def check(root):
    found = []
    for name in tree.files(root):
        if name.suffix not in TEXT_SUFFIXES:
            continue
        texts = [text for _, text in tree.lines(root, name)]
        for number, text in enumerate(texts, start=1):
            if MACHINE_PATH.search(text):
                found.append(f"{name}:{number}: path of one machine: {MACHINE_PATH.search(text).group()}")
        if tree.is_source(name):
            found += check_source(name, texts)
    return found


SOUND = {
    "device/a.h": "// Comment.\n#ifndef HOLDFAST_DEVICE_A_H_\n#define HOLDFAST_DEVICE_A_H_\n#endif\n",
    "README.md": "See docs/work/plan.md, ./root/x and https://example.org/root/y.\n",
    "runtime/long.cc": "// One table, long because every row is a case.\n" + "int x;\n" * LONGEST_FILE,
    "tests/a.sh": "mktemp -d /tmp/a." + "X" * 6 + "\n",
}
FAULTS = [
    ({"device/b.h": "#pragma once\n"}, "device/b.h:1: header guard is not HOLDFAST_DEVICE_B_H_"),
    ({"device/b.h": "#ifndef HOLDFAST_B_H_\n#define HOLDFAST_B_H_\n#endif\n"}, "device/b.h:1: header guard"),
    ({"device/b.cc": "// caf\u00e9\n"}, "device/b.cc:1: not ASCII"),
    ({"device/b.cc": "int x;\n" * (LONGEST_FILE + 1)}, "device/b.cc:1: 601 lines"),
    ({"device/b.cc": "\n// TO" + "DO: later\n"}, "device/b.cc:2: loose end"),
    ({"tests/b.py": "# FIX" + "ME\n"}, "tests/b.py:1: loose end"),
    ({"HACKING.md": "cd /ro" + "ot/holdfast\n"}, "HACKING.md:1: path of one machine"),
    ({"docs/a.json": "\"/ho" + "me/ann/model\"\n"}, "docs/a.json:1: path of one machine"),
]

if __name__ == "__main__":
    tree.main(check, SOUND, FAULTS)
