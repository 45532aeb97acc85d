"""A real browser for tests: the system's Chromium, driven over a pipe in its DevTools protocol."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Self

# Commands come in at file descriptor 3 and answers go out at 4.
_START = """
import fcntl, os, sys
read, write = (fcntl.fcntl(int(text), fcntl.F_DUPFD, 10) for text in sys.argv[1:3])
os.dup2(read, 3), os.dup2(write, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_chromium() -> str | None:
    """Where the browser is, if there is one; ``ASGAT_CHROMIUM`` names another."""
    wanted = os.environ.get("ASGAT_CHROMIUM")
    return wanted or next((found for name in NAMES if (found := shutil.which(name))), None)


class Chromium:
    """One headless browser with one page; keeps what the page logs and what it asks the network for.

    Args:
        program: the browser.
        profile: an empty folder for its files.
    """

    def __init__(self, program: str, profile: Path) -> None:
        read, self._write = os.pipe()
        self._read, write = os.pipe()
        flags = [
            "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage",
            "--hide-scrollbars", "--disable-background-networking", "--remote-debugging-pipe",
            f"--user-data-dir={profile}",
        ]  # fmt: skip
        command = [sys.executable, "-c", _START, str(read), str(write), program, *flags, "about:blank"]
        self._process = subprocess.Popen(
            command, pass_fds=(read, write), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(read)
        os.close(write)
        self._buffer, self._number = b"", 0
        self._session: str | None = None
        self.complaints: list[str] = []
        self.requests: list[str] = []
        try:
            self._attach()
        except BaseException:
            self.__exit__()
            raise

    def _attach(self) -> None:
        deadline = time.monotonic() + 60
        while True:
            pages = [t for t in self("Target.getTargets")["targetInfos"] if t["type"] == "page"]
            if pages or time.monotonic() > deadline:
                break
            time.sleep(0.1)
        self._session = self("Target.attachToTarget", targetId=pages[0]["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._session = None
        with contextlib.suppress(OSError, EOFError):
            self("Browser.close")
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._read)
        os.close(self._write)

    def __call__(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Sends a command and waits for its answer; events on the way are kept."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return dict(answer["result"])

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            if not select.select([self._read], [], [], 60)[0]:
                raise EOFError("the browser does not answer")
            part = os.read(self._read, 1 << 20)
            if not part:
                raise EOFError("the browser has gone")
            self._buffer += part
        line, self._buffer = self._buffer.split(b"\0", 1)
        message: dict[str, Any] = json.loads(line)
        told = message.get("params", {})
        if message.get("method") == "Runtime.exceptionThrown":
            details = told["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description") or details["text"])
        elif message.get("method") == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert"):
            self.complaints.append(str([part.get("value") for part in told["args"]]))
        elif message.get("method") == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
            self.complaints.append(told["entry"]["text"])
        elif message.get("method") == "Network.requestWillBeSent":
            self.requests.append(told["request"]["url"])
        return message

    def open(self, path: Path, width: int = 1280, height: int = 900, dark: bool = False, fragment: str = "") -> None:
        """Opens a file in a window of this size and waits until it is drawn."""
        self.complaints.clear()
        self.requests.clear()
        self("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self("Emulation.setEmulatedMedia", features=[scheme])
        self("Page.navigate", url="about:blank")
        self("Page.navigate", url=path.absolute().as_uri() + fragment)
        self.wait("document.readyState === 'complete' && location.protocol === 'file:'")
        self.settle()

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page."""
        answer = self("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait(self, expression: str, seconds: float = 30.0) -> None:
        deadline = time.monotonic() + seconds
        while not self.evaluate(expression):
            if time.monotonic() > deadline:
                raise TimeoutError(f"never became true: {expression}")
            time.sleep(0.05)

    def settle(self) -> None:
        """Waits until two frames are drawn, so that observers have been called."""
        self.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")

    def press(self, key: str, code: int, text: str = "") -> None:
        """Presses and releases a key where the focus is."""
        for kind in ("keyDown", "keyUp"):
            parts = {"text": text} if text and kind == "keyDown" else {}
            self("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **parts)

    def screenshot(self, path: Path, whole: bool = False) -> None:
        """Writes a PNG of the window, or of the whole page."""
        options: dict[str, Any] = {"format": "png"}
        if whole:
            size = self("Page.getLayoutMetrics")["cssContentSize"]
            options |= {"captureBeyondViewport": True, "clip": {**size, "scale": 1}}
        path.write_bytes(base64.b64decode(self("Page.captureScreenshot", **options)["data"]))
