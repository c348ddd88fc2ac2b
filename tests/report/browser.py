"""A real browser without a window, driven through its debugging pipe."""

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")


def installed() -> str | None:
    """The browser on this machine, if there is one."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@dataclass
class Browser:
    """One page; `complaints` are the errors and warnings of its console."""

    reading: int
    writing: int
    session: str = ""
    complaints: list[str] = field(default_factory=list)
    _asked: int = 0
    _rest: bytes = b""
    _events: list[str] = field(default_factory=list)

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command of the DevTools protocol and wait for its answer."""
        self._asked += 1
        message = {"id": self._asked, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.writing, json.dumps(message).encode() + b"\0")
        while True:
            told = self._receive()
            if told.get("id") == self._asked:
                assert "error" not in told, (method, told)
                return dict(told["result"])

    def open(self, page: Path | str, width: int, scheme: str) -> None:
        """Show a file or an address at a width in pixels, in the `light` or `dark` scheme."""
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.ask("Emulation.setEmulatedMedia", features=features)
        url = page if isinstance(page, str) else page.resolve().as_uri()
        self._events.clear()
        self.ask("Page.navigate", url=url)
        self._wait()

    def submit(self, form: str) -> None:
        """Send the form with this selector, and wait for the page that answers."""
        self._events.clear()
        self.value(f"document.querySelector('{form}').requestSubmit(); 0")
        self._wait()

    def _wait(self) -> None:
        while "Page.loadEventFired" not in self._events:
            self._receive()

    def value(self, expression: str) -> Any:
        """What a JavaScript expression gives on the page."""
        told = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    def screenshot(self, path: Path, whole: bool = True) -> None:
        told = self.ask("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(told["data"]))

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            part = os.read(self.reading, 1 << 20)
            assert part, "the browser has gone"
            self._rest += part
        message, _, self._rest = self._rest.partition(b"\0")
        told: dict[str, Any] = json.loads(message)
        event = told.get("method", "")
        self._events.append(event)
        if event in ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled"):
            self.complaints.append(json.dumps(told["params"]))
        return told


@contextmanager
def browsing(program: str, profile: Path) -> Iterator[Browser]:
    """A browser with an empty page and a network that leads nowhere but to this machine."""
    to_browser, writing = os.pipe()
    reading, from_browser = os.pipe()
    # The protocol wants its pipes as file descriptors 3 and 4.
    command = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    flags += ["--no-first-run", f"--user-data-dir={profile}", "--remote-debugging-pipe"]
    flags += [
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        "--hide-scrollbars",
        "about:blank",
    ]
    process = subprocess.Popen(
        ["bash", "-c", command, "bash", program, *flags],
        pass_fds=(to_browser, from_browser),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(to_browser)
    os.close(from_browser)
    try:
        browser = Browser(reading, writing)
        target = browser.ask("Target.createTarget", url="about:blank")["targetId"]
        attached = browser.ask("Target.attachToTarget", targetId=target, flatten=True)
        browser.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            browser.ask(f"{domain}.enable")
        yield browser
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.close(reading)
        os.close(writing)
