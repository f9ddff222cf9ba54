# SPDX-License-Identifier: Apache-2.0
"""The command ``flopmeter`` of an installed package: becomes the program that the package carries."""

import os
import sys


def main() -> None:
    """Never returns."""
    program = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bin", "flopmeter")
    os.environ.setdefault("FLOPMETER_PYTHON", sys.executable)
    os.execv(program, [program, *sys.argv[1:]])
