# SPDX-License-Identifier: Apache-2.0
"""The page of `flopmeter report` in a real Chromium."""
import json

import pytest

import made_runs

EVIL = '</script><script>document.title = "taken"; throw 1</script><img src=x onerror=alert(1)>'


@pytest.fixture(scope="module")
def eight(tmp_path_factory, flopmeter):
    directory = tmp_path_factory.mktemp("eight")
    made_runs.describe(directory, 8)
    for rank in range(8):
        made_runs.write_stream(made_runs.stream(directory, rank), (made_runs.noisy(step, rank) for step in range(300)))
    page = directory / "report.html"
    flopmeter("report", directory, "-o", page)
    return page


def text(page):
    return page.evaluate("document.body.innerText")


@pytest.mark.parametrize("width", [400, 820, 1400])
@pytest.mark.parametrize("dark", [False, True])
def test_page_is_quiet_fits_and_asks_nothing_of_the_network(browser, eight, tmp_path, width, dark):
    page = browser.open(eight, width=width, dark=dark)
    try:
        assert page.complaints() == []
        assert page.requests() == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate("document.querySelectorAll('.chart canvas').length") >= 6
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, ground[4:-1].split(","))) < 384) == dark
        page.screenshot(tmp_path / "page.png")
        assert (tmp_path / "page.png").stat().st_size > 20_000
    finally:
        page.close()


def test_page_says_what_the_run_is(browser, eight):
    page = browser.open(eight)
    try:
        shown = text(page)
        for part in ("llama-3-8b", "NVIDIA A100 SXM 80GB", "fair", "MFU over the run", "8 ranks", "backward", "bf16",
                     "Configuration and conventions", "model-v1", "counted"):
            assert part in shown
        assert page.evaluate("document.title").startswith("MFU 4")
        # By time instead of by step: the same number of points, other places.
        page.evaluate("[...document.querySelectorAll('.switch button')][1].click()")
        assert page.complaints() == []
    finally:
        page.close()


def test_text_of_the_run_stays_text(browser, flopmeter, tmp_path):
    made_runs.describe(tmp_path, model=EVIL, run_id=EVIL, details={"layers": EVIL, EVIL: 1},
                       device={"name": EVIL, "source": EVIL, "peak_flops_per_second": {"bf16": 1e14}})
    made_runs.write_stream(made_runs.stream(tmp_path), (made_runs.noisy(step) for step in range(20)))
    flopmeter("report", tmp_path, "-o", tmp_path / "report.html")
    page = browser.open(tmp_path / "report.html")
    try:
        assert page.complaints() == []
        assert page.requests() == []
        assert page.evaluate("document.title").startswith("MFU ")
        assert page.evaluate("document.images.length") == 0
        assert page.evaluate("document.scripts.length") == 3
        assert text(page).count("onerror=alert(1)") >= 4
    finally:
        page.close()


def test_findings_waterfall_and_roofline_are_shown(browser, flopmeter, tmp_path):
    made_runs.describe(tmp_path)
    made_runs.write_stream(made_runs.stream(tmp_path), (made_runs.starved(step) for step in range(400)))
    made_runs.write_survey(tmp_path)
    flopmeter("report", tmp_path, "-o", tmp_path / "report.html")
    shown = json.loads(flopmeter("report", tmp_path, "--json").stdout)
    losses = shown["waterfall"]["losses"]
    assert sum(loss["mfu_points"] for loss in losses) == pytest.approx(1 - shown["waterfall"]["mfu"])
    assert shown["findings"][0]["rule"] in ("data_loading", "cpu_bound")
    mark = next(mark for mark in shown["marks"] if mark["rule"] == shown["findings"][0]["rule"])
    assert 180 <= mark["first_step"] <= 220 and mark["last_step"] == 399
    page = browser.open(tmp_path / "report.html")
    try:
        assert page.complaints() == []
        assert page.requests() == []
        seen = text(page)
        assert shown["findings"][0]["summary"] in seen and shown["findings"][0]["remedy"] in seen
        assert "achieved" in seen and "aten::mm" in seen and "aten::add" in seen
        assert page.evaluate("document.querySelectorAll('svg circle').length") == 5
        assert "NaN" not in seen and "undefined" not in seen
    finally:
        page.close()


def test_run_without_anything_known_still_makes_a_page(browser, flopmeter, tmp_path):
    made_runs.describe(tmp_path, device={})
    bare = {"v": 1, "step": 0, "rank": 0, "time_unix": 1.7e9, "step_seconds": 0.1, "tag": "train"}
    made_runs.write_stream(made_runs.stream(tmp_path), [bare])
    flopmeter("report", tmp_path, "-o", tmp_path / "report.html")
    page = browser.open(tmp_path / "report.html")
    try:
        assert page.complaints() == []
        assert "MFU n/a" in text(page)
        assert "NaN" not in text(page) and "undefined" not in text(page) and "null" not in text(page)
    finally:
        page.close()


def test_page_prints(browser, eight, tmp_path):
    page = browser.open(eight)
    try:
        page.pdf(tmp_path / "page.pdf")
        assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")
        assert page.complaints() == []
    finally:
        page.close()


@pytest.mark.parametrize("steps", [10_000, pytest.param(1_000_000, marks=pytest.mark.long)])
def test_long_run_opens_at_once_with_its_spikes(browser, flopmeter, tmp_path, steps):
    made_runs.describe(tmp_path)
    spikes = {steps // 3 + 1: 0.01, steps // 2 + 7: 0.97}
    made_runs.write_long(made_runs.stream(tmp_path), steps, spikes)
    flopmeter("report", tmp_path, "-o", tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size < 2 << 20
    opened = []
    for _ in range(3):  # other work on the machine is not what is measured
        page = browser.open(tmp_path / "report.html")
        opened.append(page.seconds)
        try:
            assert page.complaints() == []
            low, high = page.evaluate("[Math.min(...curve('mfu').low), Math.max(...curve('mfu').high)]")
            assert (low, high) == (0.01, 0.97)
            assert page.evaluate("data.headline.train_steps") == steps
        finally:
            page.close()
    assert min(opened) < 2


def test_json_is_what_the_page_shows(flopmeter, eight):
    shown = json.loads(flopmeter("report", eight.parent, "--json").stdout)
    assert shown["schema"] == "flopmeter.report/1"
    assert len(shown["ranks"]["rows"]) == 8


@pytest.mark.parametrize("arguments, code, word", [
    (["/nowhere/at/all"], 2, "cannot read the run directory"),
    ([], 2, "dir is required"),
])
def test_wrong_use_is_one_line(flopmeter, arguments, code, word):
    done = flopmeter("report", *arguments, check=False)
    assert done.returncode == code
    assert word in done.stderr and done.stderr.count("\n") == 1


def test_unwritable_page_fails(flopmeter, eight):
    done = flopmeter("report", eight.parent, "-o", "/nowhere/report.html", check=False)
    assert done.returncode == 1
    assert "cannot write the page" in done.stderr
