"""The files a check looks at, and the frame all checks share: report, exit status, self-test.

A check is a function (root: Path) -> list of "path:line: what is wrong". Its self-test plants each fault in a
temporary tree and must see it reported, and must find nothing in a tree without faults.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE_SUFFIXES = {".h", ".cc", ".cu", ".cuh", ".py", ".sh", ".cmake"}
SOURCE_NAMES = {"dev", "CMakeLists.txt"}
SKIPPED_FOLDERS = {".git", "build", "__pycache__", ".venv", ".cache"}


def listed_by_git(root):
    """What git tracks or would add; None without git or outside a checkout."""
    if not (root / ".git").exists() or shutil.which("git") is None:
        return None
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True, check=False)
    if listed.returncode != 0:
        return None
    return [pathlib.PurePath(n) for n in listed.stdout.decode().split("\0") if n]


def files(root):
    """Files of the repository, as sorted paths relative to `root`."""
    names = listed_by_git(root)
    if names is None:
        names = [p.relative_to(root) for p in root.rglob("*")]
    return sorted(n for n in set(names)
                  if not SKIPPED_FOLDERS & set(n.parts) and (root / n).is_file()
                  and not (root / n).is_symlink())


def is_source(name):
    return name.suffix in SOURCE_SUFFIXES or name.name in SOURCE_NAMES


def lines(root, name):
    """(number, text) of each line; bytes that are not UTF-8 become replacement characters."""
    text = (root / name).read_bytes().decode(errors="replace")
    return enumerate(text.splitlines(), start=1)


def plant(root, tree):
    for name, text in tree.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def self_test(check, sound, faults):
    """`sound` is a tree without faults; each fault is (tree to add, text that must be reported)."""
    failures = []
    for added, expected in [({}, None)] + faults:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            plant(root, sound)
            plant(root, added)
            found = check(root)
        if expected is None:
            failures += [f"false alarm: {line}" for line in found]
        elif not any(expected in line for line in found):
            failures.append(f"planted in {list(added)}: wanted '{expected}', got {found}")
    return failures


def main(check, sound, faults):
    """usage: check_x.py ROOT | --self-test"""
    if sys.argv[1:] == ["--self-test"]:
        found = self_test(check, sound, faults)
    elif len(sys.argv) == 2:
        found = check(pathlib.Path(sys.argv[1]).resolve())
    else:
        print(f"usage: {sys.argv[0]} ROOT | --self-test", file=sys.stderr)
        sys.exit(2)
    for line in found:
        print(line)
    print(f"{len(found)} found")
    sys.exit(1 if found else 0)
