# SPDX-License-Identifier: Apache-2.0
"""The text of `flopmeter diagnose` and `compare` fits the width there is."""
import json

import pytest

import made_runs


@pytest.fixture(scope="module")
def starved(tmp_path_factory):
    directory = tmp_path_factory.mktemp("starved")
    made_runs.describe(directory)
    made_runs.write_stream(made_runs.stream(directory), (made_runs.starved(step) for step in range(400)))
    return directory


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_findings_wrap_between_words(flopmeter, starved, columns):
    finding = json.loads(flopmeter("diagnose", starved, "--json").stdout)["findings"][0]
    shown = flopmeter("diagnose", starved, "--price-per-device-hour", 2, env={"COLUMNS": str(columns)}).stdout
    assert max(map(len, shown.split("\n"))) <= columns
    together = " ".join(shown.split())
    for part in ("summary", "evidence", "remedy"):
        assert finding[part] in together


def test_without_a_width_a_remedy_is_one_line(flopmeter, starved):
    finding = json.loads(flopmeter("diagnose", starved, "--json").stdout)["findings"][0]
    assert len(finding["remedy"]) > 100
    assert f"   remedy:   {finding['remedy']}\n" in flopmeter("diagnose", starved, env={}).stdout


def test_comparison_lines_up(flopmeter, starved):
    lines = flopmeter("compare", starved, starved, env={"COLUMNS": "80"}).stdout.split("\n")[2:-1]
    assert len(lines) > 3 and len({len(line) for line in lines}) == 1
