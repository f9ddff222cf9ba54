# SPDX-License-Identifier: Apache-2.0
"""Size of the wheel, and the time from a fresh environment to the first estimate."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main():
    with tempfile.TemporaryDirectory() as folder:
        pack = [sys.executable, ROOT / "tools" / "make_wheel.py", "--from", ROOT / "build" / "release", "--dist", folder]
        wheel = Path(subprocess.run(pack, check=True, capture_output=True, text=True).stdout.strip())
        venv = Path(folder) / "venv"
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        begin = time.monotonic()
        subprocess.run([venv / "bin" / "pip", "install", "--quiet", "--no-index", wheel], check=True)
        installed = time.monotonic()
        subprocess.run([venv / "bin" / "flopmeter", "estimate", "llama-3-8b"], check=True, stdout=subprocess.DEVNULL)
        print(f"wheel             {wheel.stat().st_size / 1e6:6.1f} MB")
        print(f"pip install       {installed - begin:6.1f} s")
        print(f"first estimate    {time.monotonic() - installed:6.2f} s")


if __name__ == "__main__":
    main()
