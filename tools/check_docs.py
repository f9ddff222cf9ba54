#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the Markdown files: links, paths, and commands must exist, and translations must match the English page.

Usage: check_docs.py [ROOT]

A translation NAME.zh-CN.md matches NAME.md if both have the same heading levels and, section by section, the same code
blocks (except for comments), the same inline code, the same link targets, and the same numbers.
Prints one line per offense and exits with status 1 if there is any.
"""
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

SUFFIX = ".zh-CN.md"
LINK = re.compile(r"(?<!`)\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"\s*(?:#|//) .*$", re.MULTILINE)
INLINE_CODE = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"^(?:benchmarks|cli|cmake|docs|examples|python|src|tests|tools)/[\w./*-]*$")
TEST = re.compile(r"^(?:test_\w+\.py|\w+_test\.cpp)$")
COMMAND = re.compile(r"^(?:\$ )?flopmeter ([a-z-]+)\b", re.MULTILINE)
NUMBER = re.compile(r"[-+−]?\d[\d,.]*(?:\.\d+)?")


def tracked(root, pattern="*.md"):
    listed = subprocess.run(["git", "ls-files", "-z", pattern], cwd=root, check=True, capture_output=True)
    return [name for name in listed.stdout.decode().split("\0") if name]


def without_code(text):
    return INLINE_CODE.sub("", FENCE.sub("", text))


def check_links(root, name):
    for target in LINK.findall(without_code((root / name).read_text())):
        path, _, _ = target.partition("#")
        if path and "://" not in path and not (root / name).parent.joinpath(path).exists():
            yield f"{name}: broken link: {target}"


def check_paths(root, name, text):
    """Paths in inline code, relative to the root or the page, must exist; a star matches any name.  So must tests."""
    folders = [root, (root / name).parent]
    for path in INLINE_CODE.findall(FENCE.sub("", text)):
        if PATH.match(path) and not any(any(folder.glob(path.rstrip("/"))) for folder in folders):
            yield f"{name}: {path} does not exist"
        if TEST.match(path) and not tracked(root, f"*/{path}"):
            yield f"{name}: test {path} does not exist"


def check_commands(root, name, text):
    """Commands of flopmeter must be in the command-line reference."""
    reference = root / "docs" / "reference" / "cli.md"
    if reference.exists():
        known = re.findall(r"^## flopmeter ([\w-]+)$", reference.read_text(), re.MULTILINE)
        code = "\n".join(FENCE.findall(text) + INLINE_CODE.findall(text))
        for command in sorted(set(COMMAND.findall(code)) - set(known)):
            yield f"{name}: flopmeter {command} does not exist"


def sections(text):
    """(heading level, body) of each section; headings inside code blocks do not count."""
    fences = FENCE.findall(text)
    marked = FENCE.sub("\0", text)
    parts = re.split(r"^(#+) .*$", marked, flags=re.MULTILINE)
    remaining = iter(fences)
    for level, body in zip(["", *parts[1::2]], parts[::2], strict=True):
        yield len(level), re.sub("\0", lambda _: next(remaining), body)


def facts(body):
    """Language-independent content of a section."""
    prose = FENCE.sub("", body)
    plain = INLINE_CODE.sub("", LINK.sub("](", prose))
    links = [target.replace(SUFFIX, ".md") for target in LINK.findall(prose)]
    return {
        "code block": [COMMENT.sub("", block) for block in FENCE.findall(body)],
        "inline code": Counter(INLINE_CODE.findall(prose)),
        "link": Counter(links),
        "number": Counter(number.rstrip(".,") for number in NUMBER.findall(plain)),
    }


def check_translation(root, name):
    original = name.replace(SUFFIX, ".md")
    ours, theirs = (list(sections((root / page).read_text())) for page in (name, original))
    if [level for level, _ in ours] != [level for level, _ in theirs]:
        yield f"{name}: headings differ from {original}"
        return
    for index, ((_, ours_body), (_, theirs_body)) in enumerate(zip(ours, theirs, strict=True)):
        for kind, found in facts(ours_body).items():
            expected = facts(theirs_body)[kind]
            if found != expected:
                yield f"{name}: section {index}: {kind} differs from {original}: {difference(found, expected)}"


def difference(found, expected):
    if isinstance(found, Counter):
        return f"missing {sorted(expected - found)}, additional {sorted(found - expected)}"
    return f"missing {[x for x in expected if x not in found]}, additional {[x for x in found if x not in expected]}"


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    names = tracked(root)
    offenses = [offense for name in names for offense in check_links(root, name)]
    for name in names:
        text = (root / name).read_text()
        offenses += [*check_paths(root, name, text), *check_commands(root, name, text)]
    offenses += [offense for name in names if name.endswith(SUFFIX) for offense in check_translation(root, name)]
    print("\n".join(offenses) if offenses else f"docs: {len(names)} pages are in order")
    return 1 if offenses else 0


if __name__ == "__main__":
    sys.exit(main())
