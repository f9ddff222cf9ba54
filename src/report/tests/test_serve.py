# SPDX-License-Identifier: Apache-2.0
"""`flopmeter serve`: its command line, its index, and its answers to any client."""
import http.client
import json
import socket
import subprocess
import sys
import threading
import time

import pytest

import synthetic_runs
from serving import Server, runs, server  # noqa: F401 (fixtures)

# Command line.

def test_empty_directory_is_an_empty_list(program, tmp_path):
    with Server(program, tmp_path) as server:
        assert server.json("/api/runs")["runs"] == []


def test_missing_directory_and_taken_port_are_one_line(program, tmp_path):
    with Server(program, tmp_path) as server:
        for arguments, words in ((["/nowhere/at/all"], "No such file"), ([str(tmp_path), "--port", str(server.port)], "cannot listen"),
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


def test_recorded_step_has_a_timeline(program, flopmeter, tmp_path):
    synthetic_runs.describe(tmp_path / "run")
    synthetic_runs.write_stream(synthetic_runs.stream(tmp_path / "run"), (synthetic_runs.noisy(step) for step in range(20)))
    call = {"ph": "X", "pid": 1, "tid": 1}
    events = [{**call, "cat": "user_annotation", "name": "ProfilerStep#7", "ts": 0, "dur": 1000},
              {**call, "cat": "cpu_op", "name": "aten::mm", "ts": 100, "dur": 500}, {**call, "cat": "cpu_op", "name": "aten::add", "ts": 700, "dur": 100}]
    with Server(program, tmp_path) as server:
        run = "/api/run/" + server.runs()["run"]["id"]
        assert server.json(run)["step_timeline"] is None
        trace = {"schemaVersion": 1, "traceEvents": events}
        (tmp_path / "run" / "trace_20231114_221320.rank0.json").write_text(json.dumps(trace))
        shown = server.json(run)["step_timeline"]
        assert {"aten::mm", "aten::add"} <= set(shown["names"])
        assert shown == json.loads(flopmeter("report", tmp_path / "run", "--json").stdout)["step_timeline"]


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
