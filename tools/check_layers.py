#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that includes, link lines, and Python imports point down the layers.

A C++ module may use itself and modules of lower layers, but not other modules of the same layer. It uses them through
their public headers (<flopmeter/module/name.h>) and links them as flopmeter::module. Each folder of src/ is a module
of a layer. Folders of the Python package do not import the folders in PYTHON_FORBIDDEN.
Prints one line per offense as file:line and exits with status 1 if there is any.
"""
import ast
import re
import sys
from pathlib import Path

LAYERS = [
    ["src/core", "src/http"],
    ["src/catalog", "src/telemetry", "src/runstore"],
    ["src/counting", "src/sinks", "src/trace", "src/analysis"],
    ["src/monitor"],
    ["src/adapters/torch", "src/adapters/mpi", "src/report"],
    ["python", "cli", "cli/peak", "cli/demo"],
]
LEVEL = {module: level for level, modules in enumerate(LAYERS) for module in modules}
BY_NAME = {module.split("/")[-1]: module for module in LEVEL}
USERS_OF_HTTP = {"src/http", "src/sinks", "src/report"}
CHECKED_FOLDERS = ("src", "cli", "python")  # tests/, benchmarks/, and examples/ may use everything

PACKAGE = "python/flopmeter"
PUBLIC_NAMES = f"{PACKAGE}/__init__.py"  # re-exports the whole package
# Folder of the package ("": its top) to the folders that it does not import. compat may import everything.
PYTHON_FORBIDDEN = {
    "": {"compat", "integrations", "launcher"},
    "torch": {"compat", "integrations", "launcher"},
    "integrations": {"compat", "launcher"},
    "launcher": {"compat", "integrations"},
}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]')
LINK_COMMAND = re.compile(r"\b(?:target_link_libraries|flopmeter_module|flopmeter_extension)\s*\(([^)]*)\)")
LINKED = re.compile(r"\bflopmeter(::|_)(\w+)")


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
    for header in (root / "src").glob("**/include/flopmeter/**/*.h"):
        path = header.relative_to(root).as_posix()
        module = module_of(path)
        if module:
            owners[path.split("/include/", 1)[1]] = module
    return owners


def objection(user, used):
    """Why `user` must not use the module `used`; None if it may."""
    if user == used:
        return None
    if used == "src/http":
        return None if user in USERS_OF_HTTP else f"{user} uses http, which serves only sinks and report"
    if LEVEL[user] > LEVEL[used]:
        return None
    if LEVEL[user] == LEVEL[used]:
        return f"{user} uses {used}, a module of the same layer"
    return f"{user} (layer {LEVEL[user]}) uses {used} (layer {LEVEL[used]}), which is above it"


def check_include(line, path, root, owners):
    """Why an include line is wrong; None if it is right."""
    found = INCLUDE.match(line)
    if not found:
        return None
    user = module_of(path)
    mark, name = found.groups()
    if name.startswith("flopmeter/"):
        used = owners.get(name) or BY_NAME.get(name.split("/")[1])  # the latter: a generated header
        return objection(user, used) if used else "no module owns this header"
    target = (root / path).parent.joinpath(name).resolve()
    if mark == "<" or not target.is_relative_to(root):
        return None
    used = module_of(target.relative_to(root).as_posix())
    if used in (None, user):
        return None
    return objection(user, used) or f"{user} includes a header of {used} by its path; use <flopmeter/...>"


def check_source(path, root, owners):
    for number, line in enumerate((root / path).read_text().splitlines(), 1):
        wrong = check_include(line, path, root, owners)
        if wrong:
            yield f"{path}:{number}: {wrong}: {line.strip()}"


def check_links(path, root):
    user = module_of(path)
    text = re.sub(r"#.*", lambda comment: " " * len(comment.group()), (root / path).read_text())
    for command in LINK_COMMAND.finditer(text):
        for target in LINKED.finditer(text, *command.span(1)):
            kind, name = target.groups()
            used = BY_NAME.get(name)
            where = f"{path}:{text.count(chr(10), 0, target.start()) + 1}"
            if kind == "_":
                if used not in (None, user):
                    yield f"{where}: bare target {target.group()}; link flopmeter::{name}"
            elif used is None:
                if name != "flopmeter":
                    yield f"{where}: no module is called {name}"
            elif wrong := objection(user, used):
                yield f"{where}: {wrong}: {target.group()}"


def imported(node):
    """Full names that an import statement, or a call of import_module with a constant, refers to."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.level == 0:
        return [f"{node.module}.{alias.name}" for alias in node.names]
    if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) == "import_module":
        return [argument.value for argument in node.args[:1] if isinstance(argument, ast.Constant)]
    return []


def check_imports(path, root):
    folders = path[len(PACKAGE) + 1:].split("/")[:-1]
    folder = folders[0] if folders else ""
    forbidden = PYTHON_FORBIDDEN.get(folder, set())
    for node in ast.walk(ast.parse((root / path).read_text(), path)):
        for name in imported(node):
            used = name.split(".")[1] if name.startswith("flopmeter.") else None
            if used in forbidden:
                yield f"{path}:{node.lineno}: {folder or 'the top'} of the package imports {used}: {name}"


def check_folders(root):
    """Each folder of src/ with a CMakeLists.txt is a module."""
    for file in sorted((root / "src").glob("**/CMakeLists.txt")):
        path = file.relative_to(root).as_posix()
        if path.count("/") > 1 and module_of(path) is None:
            yield f"{path}:1: {path.rpartition('/')[0]} is not a module of LAYERS in tools/check_layers.py"


def check(root):
    """Yields all offenses under root as text lines."""
    owners = header_owners(root)
    yield from check_folders(root)
    for file in sorted(file for folder in CHECKED_FOLDERS for file in (root / folder).rglob("*")):
        path = file.relative_to(root).as_posix()
        if file.suffix == ".py" and path.startswith(PACKAGE + "/") and path != PUBLIC_NAMES:
            yield from check_imports(path, root)
        if module_of(path) is None:
            continue
        if file.suffix in (".h", ".cpp", ".cc", ".hpp"):
            yield from check_source(path, root, owners)
        elif file.name == "CMakeLists.txt":
            yield from check_links(path, root)


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    offenses = list(check(root))
    print("\n".join(offenses) if offenses else "layers: every include, link line, and import points down")
    return 1 if offenses else 0


if __name__ == "__main__":
    sys.exit(main())
