#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the text of tracked files: no machine's own paths, no unfinished notes, no overlong files.

Prints file:line for each offence and exits 1 if there is one.
"""
import re
import subprocess
import sys
from pathlib import Path

SOURCE = {".h", ".cpp", ".cc", ".hpp", ".py", ".sh", ".cmake"}
MAX_LINES = 400
README_MAX_LINES = 119
# Files that may be longer, each with its reason.
LONG_FILES = {
}
# Written in pieces, so that this file does not offend against itself.
MACHINE_PATH = re.compile(r"(?<![\w.$}/-])/(?:work|root|home|Users)/[\w.-]")
UNFINISHED = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X)\b")


def tracked(root):
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, check=True, capture_output=True)
    return [name for name in listed.stdout.decode().split("\0") if name]


def check_file(root, name):
    path = root / name
    if path.is_symlink() or not path.is_file():
        return
    try:
        lines = path.read_text().splitlines()
    except UnicodeDecodeError:
        return  # not text
    is_source = path.suffix in SOURCE
    for number, line in enumerate(lines, 1):
        if MACHINE_PATH.search(line):
            yield f"{name}:{number}: a path of one machine: {line.strip()}"
        if is_source and UNFINISHED.search(line):
            yield f"{name}:{number}: an unfinished note: {line.strip()}"
    if is_source and len(lines) > MAX_LINES and name not in LONG_FILES:
        yield f"{name}:{len(lines)}: longer than {MAX_LINES} lines; split it, or give the reason in {Path(__file__).name}"
    if name == "README.md" and len(lines) > README_MAX_LINES:
        yield f"{name}:{len(lines)}: longer than {README_MAX_LINES} lines"


def main():
    own = Path(__file__).parent.parent.resolve()
    root = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else own
    names = tracked(root)
    offences = [offence for name in names for offence in check_file(root, name)]
    stale = [name for name in LONG_FILES if root == own and name not in names]
    offences += [f"{name}: allowed to be long, but not in the project" for name in stale]
    print("\n".join(offences) if offences else f"text: {len(names)} tracked files are in order")
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
