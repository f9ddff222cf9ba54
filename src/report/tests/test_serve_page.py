# SPDX-License-Identifier: Apache-2.0
"""The page of `flopmeter serve` in a real Chromium."""
import json
import subprocess
import sys
import time

import pytest

import synthetic_runs
from serving import Server, open_page, runs, server, shown  # noqa: F401 (fixtures)


def test_list_opens_a_run_and_finds_it_by_a_word(browser, server):
    page = open_page(browser, server)
    try:
        page.wait("document.querySelectorAll('tbody tr').length === 3")
        page.ask("Input.dispatchKeyEvent", type="keyDown", key="/", text="/")
        page.ask("Input.insertText", text="STARV")
        page.wait("document.querySelectorAll('tbody tr').length === 1")
        assert "search=STARV" in page.evaluate("location.hash")
        page.evaluate("document.querySelector('tbody a').click()")
        page.wait("document.querySelectorAll('.chart canvas').length >= 6")
        assert "Where the time went" in shown(page) and page.complaints() == []
        page.evaluate("history.back()")
        page.wait("document.querySelectorAll('tbody tr').length === 1")  # still filtered
    finally:
        page.close()


@pytest.mark.parametrize("width", [400, 1400])
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("view", ["", "run", "rank", "compare"])
def test_views_fit_have_no_errors_and_request_only_from_the_server(browser, server, width, dark, view):
    found = server.runs(3)
    path = {"": "", "run": f"#/run/{found['group/eight']['id']}", "rank": f"#/run/{found['group/eight']['id']}/rank/3",
            "compare": f"#/compare/{found['starved']['id']},{found['group/eight']['id']}"}[view]
    page = open_page(browser, server, path, width=width, dark=dark)
    try:
        page.wait("document.querySelectorAll(view.data || location.hash.includes('compare') ? '.chart canvas' : 'tbody tr').length >= 3")
        assert page.complaints() == []
        assert all(one.startswith(server.address) or one.startswith("data:") for one in page.requests())
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, ground[4:-1].split(","))) < 384) == dark
        assert not {"NaN", "undefined", "Infinity"} & set(shown(page).replace("\n", " ").split())
    finally:
        page.close()


def test_text_of_a_run_stays_text(browser, server):
    found = server.runs(3)
    for path in ("", f"#/run/{found['<b>evil']['id']}", f"#/compare/{found['<b>evil']['id']},{found['starved']['id']}"):
        page = open_page(browser, server, path)
        try:
            page.wait("document.body.innerText.includes('alert(1)')")
            assert page.complaints() == []
            assert page.evaluate("document.images.length") == 0 and page.evaluate("document.querySelectorAll('td b, .run b img').length") == 0
            assert page.evaluate("document.title") != "taken"
            assert not set(shown(page)) & {"\x1b", "\u202e"}
        finally:
            page.close()


def test_link_holds_view_axis_zoom_and_fixes(browser, server):
    run = server.runs(3)["starved"]["id"]
    page = open_page(browser, server, f"#/run/{run}")
    try:
        page.wait("charts.length >= 4")
        assert page.evaluate("document.querySelector('.stack span:last-child').getBoundingClientRect().width") < 2
        page.evaluate("document.querySelector('.what-if input').click()")
        page.evaluate("[...document.querySelectorAll('.switch button')][1].click()")
        x, y, right = page.evaluate("""(() => { const {graph} = charts[0]; graph.graphDiv.scrollIntoView({block: "center"});
            const box = graph.graphDiv.getBoundingClientRect(); return [box.x + 200, box.y + 120, box.x + 500]; })()""")
        for kind, where in (("mousePressed", x), ("mouseMoved", right), ("mouseReleased", right)):
            page.ask("Input.dispatchMouseEvent", type=kind, x=where, y=y, button="left", clickCount=1)
        zoom = page.wait("window_")
        link = page.evaluate("location.hash")
        assert "axis=time" in link and "zoom=" in link and "fix=" in link
        assert page.evaluate("charts.every(one => one.graph.xAxisRange()[0] === window_[0])")
    finally:
        page.close()
    page = open_page(browser, server, link)
    try:
        page.wait("charts.length >= 4")
        low, high = page.evaluate("charts[1].graph.xAxisRange()")
        assert low == pytest.approx(zoom[0], rel=1e-6) and high == pytest.approx(zoom[1], rel=1e-6)
        assert page.evaluate("axis") == "time" and page.evaluate("document.querySelector('.what-if input').checked")
        assert "With this fix" in shown(page)
        assert page.evaluate("document.querySelector('.stack span:last-child').getBoundingClientRect().width") > 20  # the saved time
        assert page.complaints() == []
    finally:
        page.close()


def test_heat_map_opens_a_rank(browser, server):
    listed = server.runs(3)["group/eight"]
    assert (listed["ranks"], listed["silent_ranks"]) == (8, 1)
    run = listed["id"]
    page = open_page(browser, server, f"#/run/{run}")
    try:
        page.wait("document.querySelectorAll('tr.slow').length")
        assert "29, silent" in page.evaluate("[...document.querySelectorAll('tr.slow')].map(row => row.innerText).join()")
        x, y = page.wait("""(() => { const map = document.querySelector('canvas.heat'); if (!map) return null; map.scrollIntoView({block: "center"});
            const box = map.getBoundingClientRect(); return [box.x + 0.5 * box.width, box.y + box.height * 3.5 / 8]; })()""")
        page.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        page.wait("document.body.innerText.includes('Rank 3, step ')")
        for kind in ("mousePressed", "mouseReleased"):
            page.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        page.wait("view.data && view.data.rank === 3")
        assert "rank 3 of 8" in shown(page)
        assert page.evaluate("location.hash") == f"#/run/{run}/rank/3" and page.complaints() == []
    finally:
        page.close()


def test_comparison_has_budgets_side_by_side_and_three_axes(browser, server):
    found = server.runs(3)
    page = open_page(browser, server)
    try:
        page.wait("document.querySelectorAll('tbody tr').length === 3")
        for name in ("starved", "group/eight"):
            page.evaluate(f"document.getElementById('pick-{found[name]['id']}').click()")
        page.evaluate("document.querySelector('a.button').click()")
        page.wait("document.querySelectorAll('.budget-row').length === 2 && charts.length >= 3")
        assert "useful math" in shown(page) and "waiting for data" in shown(page)
        ends = []
        for axis in ("step", "time", "tokens"):
            page.evaluate(f"document.getElementById('axis-{axis}').click()")
            ends.append(page.evaluate("charts[0].graph.xAxisExtremes()[1]"))
        assert ends[0] == pytest.approx(400, rel=0.01) and ends[1] == pytest.approx(260, rel=0.01) and ends[2] > 1e6
        assert page.complaints() == []
    finally:
        page.close()


def test_static_comparison_is_the_same_page(browser, flopmeter, runs, tmp_path):
    flopmeter("report", runs / "starved", runs / "group" / "eight", "-o", tmp_path / "both.html")
    page = browser.open(tmp_path / "both.html")
    try:
        assert page.evaluate("document.querySelectorAll('.budget-row').length") == 2
        page.evaluate("document.querySelector('td a').click()")
        page.wait("view.data && charts.length >= 4")
        assert page.requests() == [] and page.complaints() == []
    finally:
        page.close()


def test_page_follows_a_run_and_comes_back_after_a_restart_of_the_server(browser, program, tmp_path):
    directory = tmp_path / "live"
    synthetic_runs.describe(directory)
    start = time.time()
    synthetic_runs.write_stream(synthetic_runs.stream(directory), (synthetic_runs.noisy(step, start=start) for step in range(20)))

    def append(step, **more):
        with open(synthetic_runs.stream(directory), "a") as file:
            file.write(json.dumps(synthetic_runs.noisy(step, start=start, **more)) + "\n")

    with Server(program, tmp_path) as server:
        page = open_page(browser, server, f"#/run/{server.runs()['live']['id']}")
        page.wait("view.data && view.data.headline.last_step === 19")
        page.evaluate("window.same = charts[0].graph, document.querySelector('summary') && document.querySelector('summary').focus()")
        append(19, tag="evaluation")
        append(20)
        page.wait("view.data.headline.last_step === 20")
        assert page.evaluate("document.getElementById('events').textContent") == "evaluation (1)"
        assert page.evaluate("charts[0].graph === same && charts[0].graph.numRows()") == 21  # updated in place
        port = server.port
    try:
        page.wait("document.querySelector('.status').textContent.includes('does not answer')")
        append(21)
        with Server(program, tmp_path, port=port):
            page.wait("view.data.headline.last_step === 21")
            page.wait("document.querySelector('.status').textContent === ''")
    finally:
        page.close()


def test_zoom_shows_the_steps_that_a_long_run_has_there(browser, program, tmp_path):
    directory = tmp_path / "long"
    synthetic_runs.describe(directory)
    synthetic_runs.write_long(synthetic_runs.stream(directory), 8000, {4321: 0.05})
    with Server(program, tmp_path) as server:
        run = server.runs()["long"]["id"]
        window = server.json(f"/api/run/{run}/window?first=4300&last=4400")["timeline"]
        assert window["step"] == list(range(4300, 4401))
        assert server.request(f"/api/run/{run}/window?first=x").status == 404
        page = open_page(browser, server, f"#/run/{run}?zoom=4300,4400")
        try:
            rows = page.wait("charts.length >= 4 && charts[0].timeline.step.includes(4321) && charts[0].graph.numRows()")
            assert page.evaluate("charts[0].timeline.last_step.every((last, i) => i === 0 || charts[0].timeline.step[i] > charts[0].timeline.last_step[i - 1])")
            i = page.evaluate("charts[0].timeline.step.indexOf(4321)")
            assert page.evaluate(f"charts[0].curves.find(one => one.field === 'mfu').mean[{i}]") == pytest.approx(0.05, rel=1e-3)
            page.evaluate("charts[0].graph.resetZoom()")
            page.wait(f"charts[0].graph.numRows() < {rows}")
            assert page.complaints() == []
        finally:
            page.close()


def test_planned_steps_and_time_left_of_a_live_run(browser, program, tmp_path):
    directory = tmp_path / "planned"
    synthetic_runs.describe(directory, total_steps=1019)
    start = time.time() - 10
    synthetic_runs.write_stream(synthetic_runs.stream(directory), (synthetic_runs.record(step, start=start) for step in range(20)))
    with Server(program, tmp_path) as server:
        run = server.runs()["planned"]
        assert (run["total_steps"], run["remaining_seconds"]) == (1019, 500)
        page = open_page(browser, server)
        try:
            page.wait("document.body.innerText.includes('19 / 1,019')")
            assert "8 min 20 s" in shown(page)
            page.evaluate("document.querySelector('tbody a').click()")
            page.wait("document.querySelectorAll('.tiles').length")
            assert "19 of 1,019" in shown(page) and "8 min 20 s" in shown(page)
        finally:
            page.close()


def test_page_of_another_origin_reads_nothing(browser, program, server, runs, tmp_path):
    """The other origin is a second server on this machine, whose page a user may have opened as well."""
    with Server(program, tmp_path) as other:
        page = open_page(browser, other)
        try:
            reads = page.evaluate(f"""Promise.all([
                fetch("{server.address}api/runs").then(answer => answer.text(), () => "refused"),
                new Promise(done => {{ const events = new EventSource("{server.address}api/events"); events.onmessage = () => done("read");
                                       events.onerror = () => {{ events.close(); done("refused"); }}; }})])""")
            assert reads == ["refused", "refused"]
            page.evaluate(f"""new Promise(done => {{ const frame = document.createElement("iframe"); frame.src = "{server.address}";
                frame.onload = frame.onerror = done; document.body.append(frame); setTimeout(done, 3000); }})""")
            assert page.evaluate("frames.length === 0 || (() => { try { return !frames[0].document.body.innerText; } catch { return true; } })()")
        finally:
            page.close()
        evil = tmp_path / "evil.html"  # a page that may embed anything
        evil.write_text(f"""<script>fetch("{server.address}api/runs").then(answer => answer.text(), () => "refused").then(text => document.title = text);</script>
            <iframe src="{server.address}"></iframe>""")
        page = browser.open(evil)
        try:
            page.wait("document.title")
            assert page.evaluate("document.title") == "refused"
            frames = page.ask("Page.getFrameTree")["frameTree"].get("childFrames", [])
            assert all(one["frame"]["url"].startswith("chrome-error:") or not one["frame"]["url"].startswith("http") for one in frames)
        finally:
            page.close()


def test_page_connects_again_after_the_machine_slept(browser, program, tmp_path):
    directory = tmp_path / "live"
    synthetic_runs.describe(directory)
    start = time.time()
    synthetic_runs.write_stream(synthetic_runs.stream(directory), (synthetic_runs.noisy(step, start=start) for step in range(20)))
    with Server(program, tmp_path) as server:
        page = open_page(browser, server, f"#/run/{server.runs()['live']['id']}")
        try:
            page.wait("view.data && view.data.headline.last_step === 19")
            connections = len([one for one in page.requests() if one.endswith("/api/events")])
            # The clock of a machine that slept jumps; a dead connection reports nothing.
            page.evaluate("(() => { const now = Date.now; Date.now = () => now() + 3600e3; })()")
            end = time.monotonic() + 15
            while len([one for one in page.requests() if one.endswith("/api/events")]) == connections:
                assert time.monotonic() < end, "no new connection"
                time.sleep(0.2)
                page.evaluate("0")
            with open(synthetic_runs.stream(directory), "a") as file:
                file.write(json.dumps(synthetic_runs.noisy(20, start=start)) + "\n")
            page.wait("view.data.headline.last_step === 20")
        finally:
            page.close()


def press(page, key, code=0, **more):
    for kind in ("keyDown", "keyUp"):
        page.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **more)


def test_all_views_are_usable_by_keyboard(browser, server):
    page = open_page(browser, server)
    try:
        page.wait("document.querySelectorAll('tbody tr').length === 3")
        reached = set()
        for _ in range(30):
            press(page, "Tab", 9)
            reached.add(page.evaluate("document.activeElement.id || document.activeElement.textContent"))
        found = server.runs(3)
        assert {"search"} | {f"{kind}-{run['id']}" for run in found.values() for kind in ("pick", "run")} <= reached
        page.evaluate(f"document.getElementById('run-{found['starved']['id']}').focus()")
        press(page, "Enter", 13, text="\r")
        page.wait("view.data && charts.length >= 4")
        page.evaluate("document.querySelector('.chart').focus()")
        full = page.evaluate("charts[0].graph.xAxisRange()")
        press(page, "+")
        page.wait("window_")
        low, high = page.evaluate("charts[0].graph.xAxisRange()")
        assert high - low == pytest.approx((full[1] - full[0]) / 2, rel=0.05)
        press(page, "ArrowRight", 39)
        page.wait(f"charts[0].graph.xAxisRange()[0] > {low}")
        press(page, "Escape", 27)
        page.wait("!window_")
        assert page.complaints() == []
    finally:
        page.close()


def test_page_follows_a_real_training_run(browser, program, tmp_path):
    pytest.importorskip("torch")
    script = tmp_path / "train.py"
    script.write_text("""
import time, torch, flopmeter
model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
monitor = flopmeter.Monitor("runs/real", model=model)
end = time.monotonic() + 60
while time.monotonic() < end:
    with monitor.step(tokens=64, samples=64):
        model(torch.randn(64, 64)).sum().backward()
        optimizer.step()
    time.sleep(0.02)
""")
    (tmp_path / "runs").mkdir()
    training = subprocess.Popen([sys.executable, script], cwd=tmp_path,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        with Server(program, tmp_path) as server:
            page = open_page(browser, server)
            page.wait("document.querySelectorAll('.state.live').length")
            page.evaluate("document.querySelector('tbody a').click()")
            first = page.wait("view.data && view.data.headline && view.data.headline.last_step")
            page.wait(f"view.data.headline.last_step > {first} + 20")
            page.wait("view.data.step_timeline && document.querySelectorAll('canvas.lanes').length")  # of a profiled step
            assert "aten::linear" in page.evaluate("view.data.step_timeline.names")
            training.kill()
            training.wait()
            page.evaluate("location.hash = '#/runs'")
            page.wait("document.querySelectorAll('.state.done').length")
            assert page.complaints() == []
            page.close()
    finally:
        training.kill()
        if training.returncode not in (0, -9, None):
            print(training.stdout.read())
