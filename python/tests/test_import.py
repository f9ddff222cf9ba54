# SPDX-License-Identifier: Apache-2.0
"""Cost of ``import flopmeter`` and the modules that it loads."""

import statistics
import subprocess
import sys
import time

import flopmeter


def seconds(code):
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - begin


def test_importing_takes_less_than_50_ms():
    pairs = [(seconds("pass"), seconds("import flopmeter")) for _ in range(20)]
    alone, imported = (statistics.median(times) for times in zip(*pairs, strict=True))
    print(f"python alone {1e3 * alone:.1f} ms, with import flopmeter {1e3 * imported:.1f} ms, {imported / alone:.2f} times")
    assert imported - alone < 0.05


def test_importing_loads_neither_torch_nor_the_compiled_module():
    code = "import sys, flopmeter; print(*sorted(set(sys.modules) & {'torch', 'numpy', 'typing', 'flopmeter._flopmeter'}))"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "\n"


def test_all_public_names_are_found():
    for name in flopmeter.__all__:
        if name not in ("hf", "lightning"):  # these need their frameworks
            assert getattr(flopmeter, name) is getattr(flopmeter, name)
    assert set(flopmeter.__all__) <= set(dir(flopmeter))
    assert not hasattr(flopmeter, "no_such_name")
