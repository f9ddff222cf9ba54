#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the generated pages of docs/ by asking the built program; `--check` only compares.

Every catalog command of the program (`devices`, `models`, ...) becomes a page with one table, and the
help of all commands becomes docs/cli.md.
"""
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "build" / "flopmeter"
CATALOGS = {
    "devices": "Devices and their peaks",
    "models": "Models",
    "ops": "Operations and their costs",
    "fields": "Fields of a record",
    "rules": "Diagnosis rules",
}
NOTE = "<!-- Written by `make docs`. Do not edit. -->\n\n"


def ask(*arguments):
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=True,
                          env={"NO_COLOR": "1", "COLUMNS": "100", "LC_ALL": "C.UTF-8"})
    return done.stdout


def commands():
    """Names under the list of subcommands in --help, in the order shown."""
    listing = re.split(r"(?im)^(?:sub)?commands:\s*$", ask("--help"))[-1]
    return re.findall(r"(?m)^  ([a-z][a-z-]*)\b", listing)


def cell(value):
    if value is None:
        return ""
    if isinstance(value, (int, float)):
        return f"{value:,}"
    if isinstance(value, (dict, list)):
        value = json.dumps(value, ensure_ascii=False)
    return str(value).replace("|", "\\|").replace("\n", " ")


def table(rows):
    columns = list(dict.fromkeys(key for row in rows for key in row))
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(cell(row.get(key)) for key in columns) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def pages():
    """File name to text of every generated page."""
    known = commands()
    result = {}
    for name, title in CATALOGS.items():
        if name in known:
            document = json.loads(ask(name, "--json"))
            rows = document if isinstance(document, list) else document[name]
            result[f"{name}.md"] = f"# {title}\n\n{NOTE}{table(rows)}"
    helps = [f"## {' '.join(['flopmeter', *c])}\n\n```\n{ask(*c, '--help').strip()}\n```\n"
             for c in [[], *([name] for name in known)]]
    result["cli.md"] = f"# Command line\n\n{NOTE}" + "\n".join(helps)
    return result


def main():
    if not PROGRAM.exists():
        sys.exit("docs: build/flopmeter is missing: run make build")
    stale = 0
    for name, text in pages().items():
        path = ROOT / "docs" / name
        if path.exists() and path.read_text() == text:
            continue
        if "--check" in sys.argv:
            print(f"docs/{name}: differs from what the program says: run make docs")
            stale += 1
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            print(f"docs/{name}: written")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
