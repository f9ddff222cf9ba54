# SPDX-License-Identifier: Apache-2.0
"""README.md lists each sample once, and the test of each sample exists."""

import re

from seed_samples import HERE


def test_the_table_is_complete():
    rows = re.findall(r"\| (\d) [^|]*\| (\d+) \| `([^`]+)` \| `([^`:]+)::(\w+)`", (HERE / "README.md").read_text(encoding="utf-8"))
    assert sorted(row[2] for row in rows) == sorted(path.name for path in (HERE / "samples").iterdir())
    for document, line, name, file, test in rows:
        assert name.startswith(f"s{document}_line{int(line):03d}.")
        assert f"def {test}(" in (HERE / file).read_text(encoding="utf-8")
    tests = {name for file in HERE.glob("test_*_samples.py") for name in re.findall(r"^def (test_\w+)", file.read_text(encoding="utf-8"), re.M)}
    assert {row[4] for row in rows} == tests
