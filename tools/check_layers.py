#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that all includes and link lines point down the layers.

A module may use itself and modules of lower layers, but not other modules of the same layer.
Prints one line per offense as file:line and exits with status 1 if there is any.
"""
import re
import sys
from pathlib import Path

LAYERS = [
    ["src/core", "src/http"],
    ["src/catalog", "src/telemetry", "src/runstore"],
    ["src/sinks", "src/trace", "src/analysis"],
    ["src/monitor"],
    ["src/adapters/torch", "src/adapters/mpi", "src/report"],
    ["python", "cli", "cli/peak", "cli/demo"],
]
LEVEL = {module: level for level, modules in enumerate(LAYERS) for module in modules}
TOP = len(LAYERS)  # tests/, benchmarks/, examples/ may use everything
USERS_OF_HTTP = {"src/http", "src/sinks", "src/report"}
OPEN_FOLDERS = ("tests/", "benchmarks/", "examples/")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]')
LINKED = re.compile(r"\bflopmeter::(\w+)")


def module_of(path):
    """Module that owns a path; None for folders outside the layers."""
    parts = path.split("/")
    for depth in (3, 2, 1):
        name = "/".join(parts[:depth])
        if name in LEVEL:
            return name
    return None


def header_owners(root):
    """Maps flopmeter/<...>.h, as written in an include, to the module that owns the header."""
    owners = {}
    for header in root.glob("**/include/flopmeter/**/*.h"):
        path = header.relative_to(root).as_posix()
        module = module_of(path)
        if module:
            owners[path.split("/include/", 1)[1]] = module
    return owners


def allowed(user, used):
    if user is None or user == used:
        return True
    if used == "src/http":
        return user in USERS_OF_HTTP
    return LEVEL.get(user, TOP) > LEVEL.get(used, TOP)


def explain(user, used):
    if used == "src/http":
        return f"{user} uses http, which serves only sinks and report"
    if LEVEL.get(user) == LEVEL.get(used):
        return f"{user} uses {used}, a module of the same layer"
    return f"{user} (layer {LEVEL.get(user)}) uses {used} (layer {LEVEL.get(used)}), which is above it"


def included_module(line, path, root, owners):
    """Module that an include line refers to; "" for external headers, None if no module owns the header."""
    found = INCLUDE.match(line)
    if not found:
        return ""
    mark, name = found.groups()
    if name.startswith("flopmeter/"):
        folder = name.split("/")[1]
        for module in LEVEL:
            if folder in (module, module.split("/")[-1]) and name not in owners:
                return module  # generated header
        return owners.get(name)
    if mark == '"':
        target = (root / path).parent.joinpath(name).resolve()
        if target.is_relative_to(root):
            return module_of(target.relative_to(root).as_posix()) or ""
    return ""


def check_source(path, root, owners):
    user = module_of(path)
    for number, line in enumerate((root / path).read_text().splitlines(), 1):
        used = included_module(line, path, root, owners)
        if used is None:
            yield f"{path}:{number}: no module owns this header: {line.strip()}"
        elif used and not allowed(user, used):
            yield f"{path}:{number}: {explain(user, used)}: {line.strip()}"


def check_links(path, root):
    user = module_of(path)
    by_name = {module.split("/")[-1]: module for module in LEVEL}
    for number, line in enumerate((root / path).read_text().splitlines(), 1):
        for name in LINKED.findall(line.split("#")[0]):
            used = by_name.get(name)
            if used and not allowed(user, used):
                yield f"{path}:{number}: {explain(user, used)}: {line.strip()}"


def check(root):
    """Yields all offenses under root as text lines."""
    owners = header_owners(root)
    skipped = ("build/", ".venv/", ".git/")
    for file in sorted(root.rglob("*")):
        path = file.relative_to(root).as_posix()
        if path.startswith(skipped) or path.startswith(OPEN_FOLDERS) or not file.is_file():
            continue
        if file.suffix in (".h", ".cpp", ".cc", ".hpp"):
            yield from check_source(path, root, owners)
        elif file.name == "CMakeLists.txt":
            yield from check_links(path, root)


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    offenses = list(check(root))
    print("\n".join(offenses) if offenses else "layers: every include and link line points down")
    return 1 if offenses else 0


if __name__ == "__main__":
    sys.exit(main())
