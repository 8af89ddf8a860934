"""Verifies that README.md shows exactly the program, and the project for it, that the tests build and run."""
import re

import tree

PROGRAM = "examples/quickstart/quickstart.cc"
PROJECT = "examples/quickstart/CMakeLists.txt"


def check_block(root, readme, language, shown):
    """The one block of a language is the file `shown`, which is linked."""
    if f"]({shown})" not in readme:
        return [f"README.md:1: does not link {shown}"]
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", readme, re.DOTALL | re.MULTILINE)
    if len(blocks) != 1:
        return [f"README.md:1: {len(blocks)} {language} blocks instead of one"]
    if blocks[0] != (root / shown).read_text(encoding="utf-8"):
        return [f"README.md:1: the {language} block is not {shown}"]
    return []


def check(root):
    readme = (root / "README.md").read_text(encoding="utf-8")
    return check_block(root, readme, "cpp", PROGRAM) + check_block(root, readme, "cmake", PROJECT)


LINKS = f"[it]({PROGRAM}) [its project]({PROJECT})\n"
CPP = "```cpp\nint main() {}\n```\n"
CMAKE = "```cmake\nproject(p)\n```\n"
SOUND = {PROGRAM: "int main() {}\n", PROJECT: "project(p)\n", "README.md": LINKS + CPP + CMAKE + "end\n"}
FAULTS = [
    ({PROGRAM: "int main() { return 0; }\n"}, "the cpp block is not"),
    ({PROJECT: "project(q)\n"}, "the cmake block is not"),
    ({"README.md": LINKS + CMAKE}, "0 cpp blocks"),
    ({"README.md": LINKS + CPP}, "0 cmake blocks"),
    ({"README.md": CPP + CMAKE}, "does not link"),
]

if __name__ == "__main__":
    tree.main(check, SOUND, FAULTS)
