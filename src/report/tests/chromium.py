# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, driven through --remote-debugging-pipe: no port, no package."""
import base64
import json
import os
import select
import shutil
import subprocess
import time

import pytest

TIMEOUT = 60


class Chromium:
    def __init__(self, profile):
        self.profile = profile
        self.last_id = 0
        self.events = []

    def __enter__(self):
        program = shutil.which("chromium") or shutil.which("chromium-browser")
        if not program:
            pytest.skip("chromium is not installed")
        commands, self.to_browser = os.pipe()
        self.from_browser, answers = os.pipe()

        def wire():  # Chromium reads commands from descriptor 3 and answers on 4
            os.dup2(commands, 10)
            os.dup2(answers, 11)
            os.dup2(10, 3)
            os.dup2(11, 4)

        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
             "--disable-component-update", "--disable-background-networking", "--remote-debugging-pipe",
             f"--user-data-dir={self.profile}", "about:blank"],
            close_fds=False, preexec_fn=wire, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(commands)
        os.close(answers)
        self.buffer = b""
        return self

    def __exit__(self, *unused):
        os.close(self.to_browser)
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.from_browser)

    def message(self):
        while b"\0" not in self.buffer:
            if not select.select([self.from_browser], [], [], TIMEOUT)[0]:
                raise TimeoutError("chromium does not answer")
            part = os.read(self.from_browser, 1 << 20)
            if not part:
                raise RuntimeError("chromium has gone")
            self.buffer += part
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def ask(self, method, session=None, **parameters):
        self.last_id += 1
        request = {"id": self.last_id, "method": method, "params": parameters}
        if session:
            request["sessionId"] = session
        os.write(self.to_browser, json.dumps(request).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.last_id:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            self.events.append(answer)

    def open(self, path, width=1400, height=1000, dark=False):
        return Page(self, path, width, height, dark)


class Page:
    """A file or an address in one tab; collects console messages and external requests."""

    def __init__(self, browser, path, width, height, dark):
        self.browser = browser
        browser.events.clear()
        target = browser.ask("Target.createTarget", url="about:blank")["targetId"]
        self.target = target
        self.session = browser.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.ask(f"{domain}.enable")
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.address = path if isinstance(path, str) else path.resolve().as_uri()
        started = time.monotonic()
        self.ask("Page.navigate", url=self.address)
        end = started + TIMEOUT
        while not self.seen("Page.loadEventFired"):
            assert time.monotonic() < end, "the page does not load"
            browser.events.append(browser.message())
        self.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
        self.seconds = time.monotonic() - started

    def ask(self, method, **parameters):
        return self.browser.ask(method, self.session, **parameters)

    def seen(self, method):
        return [event["params"] for event in self.browser.events
                if event.get("method") == method and event.get("sessionId") == self.session]

    def evaluate(self, expression):
        result = self.ask("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def wait(self, expression, seconds=TIMEOUT):
        """Waits until an expression is true; returns its value."""
        end = time.monotonic() + seconds
        while True:
            value = self.evaluate(expression)
            if value:
                return value
            assert time.monotonic() < end, f"{expression} does not become true: {self.evaluate('document.body.innerText')[:2000]}"
            time.sleep(0.1)

    def complaints(self):
        """Console errors and warnings, exceptions, and what the browser itself logs."""
        self.evaluate("0")  # lets late events arrive
        console = [event for event in self.seen("Runtime.consoleAPICalled") if event["type"] in ("error", "warning", "assert")]
        return console + self.seen("Runtime.exceptionThrown") + self.seen("Log.entryAdded")

    def requests(self):
        return [event["request"]["url"] for event in self.seen("Network.requestWillBeSent") if event["request"]["url"] != self.address]

    def screenshot(self, path):
        size = self.ask("Page.getLayoutMetrics")["cssContentSize"]
        shot = self.ask("Page.captureScreenshot", captureBeyondViewport=True,
                        clip={"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1})
        path.write_bytes(base64.b64decode(shot["data"]))

    def pdf(self, path):
        path.write_bytes(base64.b64decode(self.ask("Page.printToPDF", printBackground=True)["data"]))

    def close(self):
        self.browser.ask("Target.closeTarget", targetId=self.target)
