# SPDX-License-Identifier: Apache-2.0
"""`flopmeter serve`: its answers to curl, and its page in a real Chromium."""
import http.client
import json
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

import synthetic_runs

EVIL = '</script><script>document.title = "taken"; throw 1</script><img src=x onerror=alert(1)>\n\x1b[31m\u202eback'


class Server:
    """A running `flopmeter serve`."""

    def __init__(self, program, *arguments, port=0):
        self.process = subprocess.Popen([program, "serve", *map(str, arguments), "--port", str(port)], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        assert line.startswith("Dashboard: http"), line + self.process.stderr.read()
        self.address = line.split()[1]
        self.port = int(self.address.split(":")[2].split("/")[0])

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(timeout=10) == 0

    def request(self, path, method="GET", body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.request(method, path, body=body, headers={"Host": "localhost", **headers})
        answer = connection.getresponse()
        answer.text = answer.read().decode()
        connection.close()
        return answer

    def json(self, path):
        return json.loads(self.request(path).text)

    def runs(self, count=1, ready=lambda run: run["state"] != "reading"):
        """Waits for the runs; returns them by name."""
        end = time.monotonic() + 60
        while True:
            runs = self.json("/api/runs")["runs"]
            if len(runs) >= count and all(map(ready, runs)):
                return {run["name"]: run for run in runs}
            assert time.monotonic() < end, runs
            time.sleep(0.1)

    def memory(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) * 1024


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Three runs: one that waits for data, one of eight ranks in a subfolder, and one full of markup."""
    root = tmp_path_factory.mktemp("runs")
    synthetic_runs.describe(root / "starved")
    synthetic_runs.write_stream(synthetic_runs.stream(root / "starved"), (synthetic_runs.starved(step) for step in range(400)))
    synthetic_runs.write_op_profile(root / "starved")
    synthetic_runs.describe(root / "group" / "eight", 8)
    for rank in range(8):
        synthetic_runs.write_stream(synthetic_runs.stream(root / "group" / "eight", rank), (synthetic_runs.noisy(step, rank) for step in range(100)))
    synthetic_runs.describe(root / "<b>evil", model=EVIL, run_id=EVIL, device={"name": EVIL, "source": EVIL, "peak_flops_per_second": {"bf16": 1e14}})
    synthetic_runs.write_stream(synthetic_runs.stream(root / "<b>evil"), (synthetic_runs.noisy(step) for step in range(20)))
    (root / "latest").symlink_to("starved")
    return root


@pytest.fixture(scope="module")
def server(program, runs):
    with Server(program, runs) as running:
        running.runs(3)
        yield running


def open_page(browser, server, path="", **options):
    return browser.open(server.address + path, **options)


def shown(page):
    return page.evaluate("document.body.innerText")


# Command line.

def test_empty_directory_is_an_empty_list(program, tmp_path):
    with Server(program, tmp_path) as server:
        assert server.json("/api/runs")["runs"] == []


def test_missing_directory_and_taken_port_are_one_line(program, tmp_path):
    with Server(program, tmp_path) as server:
        for arguments, words in ((["/nowhere/at/all"], "is not a directory"), ([str(tmp_path), "--port", str(server.port)], "cannot listen"),
                                 ([str(tmp_path), "--host", "0.0.0.0", "--port", "0"], "without a token")):
            done = subprocess.run([program, "serve", *arguments], capture_output=True, text=True, timeout=20)
            assert done.returncode == 1 and words in done.stderr and done.stderr.count("\n") == 1, done


def test_run_directory_itself_can_be_served(program, runs):
    with Server(program, runs / "starved") as server:
        assert list(server.runs()) == ["starved"]


# The index.

def test_list_has_every_run_once_with_its_figures(server, flopmeter, runs):
    found = server.runs(3)
    assert sorted(found) == ["<b>evil", "group/eight", "starved"]
    one = found["starved"]
    report = json.loads(flopmeter("report", runs / "starved", "--json").stdout)
    assert (one["state"], one["step"], one["ranks"], one["mfu"]) == ("done", 399, 1, report["mfu"])
    assert len(one["sparkline"]) <= 40 and one["sparkline"][0] > one["sparkline"][-1]


def test_run_is_the_document_of_the_report(server, flopmeter, runs):
    found = server.runs(3)
    for name in ("starved", "group/eight"):
        live = server.json("/api/run/" + found[name]["id"])
        report = json.loads(flopmeter("report", runs / name, "--json").stdout)
        for both in (live, report):
            both.pop("written_unix")
            both["run"].pop("directory")
        assert live == report


def test_damaged_and_outdated_runs_are_listed_with_the_reason(program, tmp_path):
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "run.json").write_text('{"schema": "flopmeter.run/1"}')
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "run.json").write_text("{")
    synthetic_runs.write_stream(synthetic_runs.stream(tmp_path / "broken"), (synthetic_runs.noisy(step) for step in range(5)))
    with Server(program, tmp_path) as server:
        found = server.runs(2)
        assert "cannot be read" in found["old"]["problem"]
        assert found["broken"]["step"] == 4
        assert server.request("/api/run/" + found["old"]["id"]).status == 404


def test_new_runs_and_records_appear_and_removed_runs_go(program, tmp_path):
    with Server(program, tmp_path) as server:
        directory = tmp_path / "late"
        synthetic_runs.describe(directory)
        synthetic_runs.write_stream(synthetic_runs.stream(directory), (synthetic_runs.noisy(step) for step in range(10)))
        assert server.runs(1, lambda run: run["step"] == 9)
        with open(synthetic_runs.stream(directory), "a") as file:
            file.write(json.dumps(synthetic_runs.noisy(10, start=time.time())) + "\n")
        # A later start repeats steps 8 to 10.
        synthetic_runs.write_stream(synthetic_runs.stream(directory, stamp="20231115_080000"), (synthetic_runs.noisy(step) for step in range(8, 12)))
        server.runs(1, lambda run: run["step"] == 11)
        assert server.json("/api/run/" + server.runs()["late"]["id"])["headline"]["train_steps"] == 12
        for file in directory.iterdir():
            file.unlink()
        directory.rmdir()
        end = time.monotonic() + 20
        while server.json("/api/runs")["runs"]:
            assert time.monotonic() < end
            time.sleep(0.2)


def test_run_whose_process_exists_is_stalled_and_then_done(program, tmp_path):
    synthetic_runs.describe(tmp_path)
    start = time.time() - 3600
    synthetic_runs.write_stream(synthetic_runs.stream(tmp_path), (synthetic_runs.record(step, start=start) for step in range(10)))
    writer = subprocess.Popen([sys.executable, "-c", "import fcntl, sys; f = open(sys.argv[1], 'a'); fcntl.flock(f, fcntl.LOCK_EX); print(1, flush=True); input()",
                               synthetic_runs.stream(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    writer.stdout.readline()
    try:
        with Server(program, tmp_path) as server:
            assert server.runs(1)[tmp_path.name]["state"] == "stalled"
            writer.communicate("\n")
            server.runs(1, lambda run: run["state"] == "done")
    finally:
        writer.kill()


def test_ranks_are_downsampled_and_have_pages(server):
    run = server.runs(3)["group/eight"]
    picture = server.json(f"/api/run/{run['id']}/ranks?first=2&count=3")
    assert picture["first_ranks"] == [2, 3, 4] and len(picture["rows"][0]) == 100
    rank = server.json(f"/api/run/{run['id']}/rank/3")
    assert rank["rank"] == 3 and rank["ranks"]["count"] == 1 and rank["headline"]["train_steps"] == 100
    assert server.request(f"/api/run/{run['id']}/rank/8").status == 404


def test_exports_are_files(server):
    run = server.runs(3)["starved"]["id"]
    table = server.request(f"/api/run/{run}/curves.csv")
    lines = table.text.splitlines()
    assert table.headers["Content-Disposition"] == f'attachment; filename="flopmeter-{run}.csv"'
    assert lines[0].startswith("first_step,last_step,time_unix,mfu_mean,mfu_low,mfu_high") and len(lines) > 100
    assert {line.count(",") for line in lines} == {lines[0].count(",")}
    assert server.request(f"/api/run/{run}/page.html").text.startswith("<!doctype html>")


# Security.

@pytest.mark.parametrize("path, method, headers, status", [
    ("/", "GET", {}, 200),
    ("/", "HEAD", {}, 200),
    ("/api/runs", "GET", {"Host": "127.0.0.1:1"}, 200),
    ("/api/runs", "GET", {"Host": "[::1]:80"}, 200),
    ("/api/runs", "GET", {"Host": "evil.example"}, 403),
    ("/api/runs", "GET", {"Host": "localhost.evil.example"}, 403),
    ("/api/runs", "GET", {"Host": ""}, 403),
    ("/api/runs", "POST", {}, 405),
    ("/api/runs", "PUT", {}, 405),
    ("/api/runs", "DELETE", {}, 405),
    ("/api/runs", "OPTIONS", {"Origin": "http://evil.example"}, 405),
    ("/api/runs", "GET", {"X-Long": "x" * 9000}, 431),
    ("/api/runs", "GET", {"Content-Length": "3"}, 413),
    ("/../../etc/passwd", "GET", {}, 404),
    ("/assets/../../../etc/passwd", "GET", {}, 404),
    ("/assets/%2e%2e/run.json", "GET", {}, 404),
    ("/assets/page", "GET", {}, 404),
    ("/api/run/..", "GET", {}, 404),
    ("/api/run/" + "0" * 16, "GET", {}, 404),
    ("/api/run/" + "0" * 16 + "/rank/-1", "GET", {}, 404),
    ("/api/run/" + "0" * 16 + "/rank/99999999999999999999", "GET", {}, 404),
    ("/nothing", "GET", {}, 404),
])
def test_answers_only_what_it_serves(server, path, method, headers, status):
    answer = server.request(path, method, **headers)
    assert answer.status == status
    for name, value in (("Content-Security-Policy", "default-src 'none'; script-src 'self'"), ("X-Content-Type-Options", "nosniff"),
                        ("Referrer-Policy", "no-referrer")):
        assert answer.headers[name].startswith(value)
    assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"] and "unsafe" not in answer.headers["Content-Security-Policy"]
    assert not [name for name in answer.headers if name.lower().startswith("access-control")]
    if method == "HEAD":
        assert answer.text == ""


def test_token_is_asked_once_and_kept_in_a_cookie(program, runs):
    with Server(program, runs, "--host", "0.0.0.0", "--token", "correct-horse") as server:
        assert server.address.endswith("/?token=correct-horse")
        assert server.request("/").status == 401
        assert server.request("/?token=correct-hors").status == 401
        assert server.request("/", Authorization="Bearer correct-horse").status == 200
        answer = server.request("/?token=correct-horse")
        assert answer.status == 303 and answer.headers["Location"] == "/"
        cookie = answer.headers["Set-Cookie"]
        assert "HttpOnly" in cookie and "SameSite" in cookie
        assert server.request("/api/runs", Cookie="a=b; " + cookie.split(";")[0]).status == 200
        assert server.request("/api/runs", Cookie=cookie.split("=")[0] + "=wrong").status == 401
        assert server.request("/api/runs", Host=socket.gethostname(), Authorization="Bearer correct-horse").status == 200
        assert server.request("/api/runs", Host="evil.example", Authorization="Bearer correct-horse").status == 403


def test_slow_clients_do_not_lock_out_others(server):
    slow = []
    try:
        for i in range(200):
            one = socket.create_connection(("127.0.0.1", server.port), timeout=5)
            one.sendall(b"GET / HTTP/1.1\r\nHost: loc")
            slow.append(one)
            if i % 20 == 19:
                assert server.request("/api/runs").status == 200
        begin = time.monotonic()
        assert server.request("/api/runs").status == 200
        assert time.monotonic() - begin < 4  # before the slow clients time out
    finally:
        for one in slow:
            one.close()


@pytest.mark.parametrize("requests", [5_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_many_requests_take_no_memory(server, requests):
    paths = ["/", "/api/runs", "/assets/dygraph.js", "/api/run/" + server.runs(3)["starved"]["id"]]

    def ask(count):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        for i in range(count):
            connection.request("GET", paths[3] if i % 50 == 0 else paths[i % 3], headers={"Host": "localhost"})
            assert connection.getresponse().read()

    ask(500)
    before = server.memory()
    threads = [threading.Thread(target=ask, args=(requests // 4,)) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert server.memory() - before < 8 << 20


# The page.

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
def test_views_fit_are_quiet_and_ask_only_the_server(browser, server, width, dark, view):
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
    run = server.runs(3)["group/eight"]["id"]
    page = open_page(browser, server, f"#/run/{run}")
    try:
        x, y = page.wait("""(() => { const map = document.querySelector('canvas.heat'); if (!map) return null; map.scrollIntoView({block: "center"});
            const box = map.getBoundingClientRect(); return [box.x + 0.5 * box.width, box.y + box.height * 3.5 / 8]; })()""")
        page.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        page.wait("document.body.innerText.includes('Rank 3, step ')")
        for kind in ("mousePressed", "mouseReleased"):
            page.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        page.wait("view.data && view.data.rank === 3")
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

    def append(step):
        with open(synthetic_runs.stream(directory), "a") as file:
            file.write(json.dumps(synthetic_runs.noisy(step, start=start)) + "\n")

    with Server(program, tmp_path) as server:
        page = open_page(browser, server, f"#/run/{server.runs()['live']['id']}")
        page.wait("view.data && view.data.headline.last_step === 19")
        page.evaluate("window.same = charts[0].graph, document.querySelector('summary') && document.querySelector('summary').focus()")
        append(20)
        page.wait("view.data.headline.last_step === 20")
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
