"""Verifies that README.md shows exactly the program that the build compiles and runs."""
import re

import tree

PROGRAM = "examples/quickstart/quickstart.cc"
LINK = f"]({PROGRAM})"
BLOCK = re.compile(r"^```cpp\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def check(root):
    readme = (root / "README.md").read_text(encoding="utf-8")
    program = (root / PROGRAM).read_text(encoding="utf-8")
    if LINK not in readme:
        return [f"README.md:1: does not link {PROGRAM}"]
    blocks = BLOCK.findall(readme)
    if len(blocks) != 1:
        return [f"README.md:1: {len(blocks)} cpp blocks instead of one"]
    if blocks[0] != program:
        return [f"README.md:1: the cpp block is not {PROGRAM}"]
    return []


SOUND = {PROGRAM: "int main() {}\n", "README.md": f"[it]({PROGRAM})\n```cpp\nint main() {{}}\n```\nend\n"}
FAULTS = [
    ({PROGRAM: "int main() { return 0; }\n"}, "the cpp block is not"),
    ({"README.md": f"[it]({PROGRAM})\n"}, "0 cpp blocks"),
    ({"README.md": "```cpp\nint main() {}\n```\n"}, "does not link"),
]

if __name__ == "__main__":
    tree.main(check, SOUND, FAULTS)
