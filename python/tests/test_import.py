# SPDX-License-Identifier: Apache-2.0
"""Cost of ``import flopmeter`` and the modules that it loads."""

import os
import subprocess
import sys

import flopmeter


def test_importing_takes_less_than_50_ms(tmp_path):
    code = "import time; begin = time.process_time(); import flopmeter; print(time.process_time() - begin)"
    compiled = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(tmp_path)}  # as in an installation
    runs = [subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=compiled) for _ in range(8)]
    assert min(float(run.stdout) for run in runs) < 0.05


def test_importing_loads_neither_torch_nor_the_compiled_module():
    code = "import sys, flopmeter; print(*sorted(set(sys.modules) & {'torch', 'transformers', 'numpy', 'typing', 'flopmeter._flopmeter'}))"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "\n"


def test_all_public_names_are_found():
    for name in flopmeter.__all__:
        if name not in ("hf", "lightning"):  # these need their frameworks
            assert getattr(flopmeter, name) is getattr(flopmeter, name)
    assert set(flopmeter.__all__) <= set(dir(flopmeter))
    assert not hasattr(flopmeter, "no_such_name")
