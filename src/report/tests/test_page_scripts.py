# SPDX-License-Identifier: Apache-2.0
"""Functions of the page's scripts, called in a real Chromium."""
import pytest

import synthetic_runs


@pytest.fixture(scope="module")
def page(browser, flopmeter, tmp_path_factory):
    directory = tmp_path_factory.mktemp("scripts")
    synthetic_runs.describe(directory)
    synthetic_runs.write_stream(synthetic_runs.stream(directory), (synthetic_runs.noisy(step) for step in range(5)))
    flopmeter("report", directory, "-o", directory / "report.html")
    opened = browser.open(directory / "report.html")
    yield opened
    opened.close()


@pytest.mark.parametrize("expression, value", [
    ("percent(0.4321)", "43.2 %"),
    ("percent(0.0432)", "4.3 %"),
    ("percent(0)", "0.0 %"),
    ("percent(85.742)", "8574.2 %"),
    ("percent(0.000012)", "0.0012 %"),
    ("percents([1 / 3, 1 / 3, 1 / 3])", ["33.4 %", "33.3 %", "33.3 %"]),
    ("percents([0.5006, 0.1634, 0.336], [1])", ["50.1 %", "16.3 %", "33.6 %"]),
    ("percents([0.68152, 0.25952, 0.04996, 0.009], [0, 1])", ["68.2 %", "26.0 %", "4.9 %", "0.9 %"]),
    ("percents([0.2504, 0.25])", ["25.0 %", "25.0 %"]),
    ("si(1234567)", "1.23 M"),
    ("si(12)", "12"),
    ("unit(3.12e14, 'FLOP/s')", "312 TFLOP/s"),
    ("bytes(25769803776)", "24.0 GiB"),
    ("duration(0.0004)", "400.0 µs"),
    ("duration(61)", "1 min 1 s"),
    ("duration(90061)", "25 h 01 min"),
    ("text(null, percent)", "n/a"),
    ("visible('a\\u001b[31m\\u202eb')", "a\ufffd[31m\ufffdb"),
    ("ago(0, 0.5)", "now"),
    ("ago(0, 75)", "1 min 15 s ago"),
    ("ago(0, 864000)", "1 Jan 1970"),
    ("median([3, 1, 2])", 2),
    ("median([2, 1])", 1),
    ("eventPlaces([{step: 4, kind: 'a'}, {step: 4, kind: 'b'}, {step: 4, kind: 'a'}, {step: 9, kind: 'b'}], step => 10 * step)", [[40, "a"], [43, "b"], [90, "b"]]),
    ("shown[''](0.059563)", "0.05956"),
    ("eventKeys({events: [{kind: 'evaluation'}, {kind: 'evaluation'}]}).map(key => key.textContent)", ["evaluation (2)"]),
    ("onAxis.ratio(0.015)", "1.5 %"),
])
def test_numbers_and_text(page, expression, value):
    assert page.evaluate(expression) == value


def test_fixes_of_one_cause_multiply_and_of_different_causes_add(page):
    left, total = page.evaluate("""(() => { const {left, total} = withFixes(
        [{cause: "a", seconds: 10}, {cause: "b", seconds: 6}],
        [{savings: {a: 5}, useful_factor: 1}, {savings: {a: 5, b: 6}, useful_factor: 1}]); return [left, total]; })()""")
    assert left == [2.5, 0] and total == 2.5


def test_runs_are_sorted_by_state_and_found_by_all_words(page):
    runs = """[{name: "old", state: "done", last_unix: 1}, {name: "new", state: "done", last_unix: 2}, {name: "now", state: "live", model: "llama"}]"""
    assert page.evaluate(f"sortRuns({runs}).map(run => run.name)") == ["now", "new", "old"]
    assert page.evaluate(f"{runs}.filter(run => matches(run, 'LIVE lla')).map(run => run.name)") == ["now"]


def test_overlay_puts_runs_on_one_axis(page):
    document = "{run: {data_parallel: 2}, timeline: {step: %s, last_step: %s, time: %s, curves: [{field: 'mfu', mean: %s}, {field: 'tokens', mean: [10, 10]}]}}"
    first = document % ("[0, 1]", "[0, 1]", "[100, 101]", "[0.1, 0.2]")
    second = document % ("[1, 2]", "[1, 2]", "[900, 905]", "[0.3, null]")
    assert page.evaluate(f"overlay([{first}, {second}], 'mfu', 'step')") == [[0, 0.1, None], [1, 0.2, 0.3]]
    assert page.evaluate(f"overlay([{first}, {second}], 'mfu', 'time')") == [[0, 0.1, 0.3], [1, 0.2, None]]
    assert page.evaluate(f"overlay([{first}], 'mfu', 'tokens')") == [[20, 0.1], [40, 0.2]]


def test_address_keeps_values(page):
    assert page.evaluate("(keep('zoom', '1,2'), keep('axis', 'time'), keep('axis', ''), [location.hash.endsWith('zoom=1%2C2'), kept('zoom'), kept('axis')])") == [True, "1,2", ""]


def test_marks_that_overlap_get_lanes(page):
    assert page.evaluate("""(() => { const marks = [{rule: "a", first_step: 0, last_step: 9}, {rule: "b", first_step: 5, last_step: 20}, {rule: "c", first_step: 10, last_step: 12}];
        numberMarks({marks, findings: [{rule: "b"}]}); return marks.map(mark => [mark.number, mark.lane]); })()""") == [[0, 0], [1, 1], [0, 0]]
