# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, spoken to over a pipe by the Chrome DevTools Protocol.

The protocol is JSON with a zero byte behind each message (``--remote-debugging-pipe``): no port is opened,
and neither a driver program nor a package is needed.
Commands and events: https://chromedevtools.github.io/devtools-protocol
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import re
import select
import subprocess
import time
from pathlib import Path
from typing import Any, Self

_TIMEOUT_S = 120.0
"""A hang, not a slow host: every test shares its cores."""
_FLAGS = (
    *("--headless", "--remote-debugging-pipe"),
    *("--disable-gpu", "--no-first-run", "--no-default-browser-check"),
    # It would ask hosts for updates and lists by itself.
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-pings"),
    # /dev/shm is 64 MB in many containers.
    "--disable-dev-shm-usage",
)
_KEYS = {"Enter": (13, "\r"), "Tab": (9, ""), "Escape": (27, "")}
_KEYS |= {"ArrowRight": (39, ""), "ArrowLeft": (37, "")}
_KEYS |= {"+": (187, "+"), "-": (189, "-"), "0": (48, "0")}


class Chromium:
    """The browser's process; a context manager that ends it."""

    def __init__(self, program: str, folder: Path) -> None:
        # The browser reads descriptor 3 and writes 4; the shell puts our pipes there.
        theirs_in, self._out = (_high(end) for end in os.pipe())
        self._in, theirs_out = (_high(end) for end in os.pipe())
        self._log = folder / "chromium.log"
        flags = [*_FLAGS, f"--user-data-dir={folder / 'profile'}"]
        if os.geteuid() == 0:
            # Chromium refuses its sandbox to root. The only pages here are our own files.
            flags.append("--no-sandbox")
        move = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out} {theirs_in}<&- {theirs_out}>&-'
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                ["bash", "-c", move, "bash", program, *flags],
                pass_fds=(theirs_in, theirs_out),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        os.close(theirs_in)
        os.close(theirs_out)
        self._buffer = b""
        self._number = 0
        self._events: dict[str, list[dict[str, Any]]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if self._process.poll() is None:
                self.call("Browser.close")
            self._process.wait(10)
        except (OSError, RuntimeError, TimeoutError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        finally:
            os.close(self._out)
            os.close(self._in)

    def call(self, method: str, *, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Give a command and wait for its answer; events that come before it are kept."""
        self._number += 1
        number = self._number
        command: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if session is not None:
            command["sessionId"] = session
        left = json.dumps(command).encode() + b"\0"
        while left:
            left = left[os.write(self._out, left) :]
        deadline = time.monotonic() + _TIMEOUT_S
        while True:
            message = self._next(deadline, method)
            if message.get("id") == number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                answer: dict[str, Any] = message["result"]
                return answer

    def events(self, session: str) -> list[dict[str, Any]]:
        """What a page has told so far; the list is the one that goes on being filled."""
        return self._events.setdefault(session, [])

    def wait_for(self, event: str, session: str) -> None:
        """Read until a page has told of an event."""
        deadline = time.monotonic() + _TIMEOUT_S
        while not any(one["method"] == event for one in self.events(session)):
            self._next(deadline, event)

    def _next(self, deadline: float, wanted: str) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(0.0, deadline - time.monotonic()))
            piece = os.read(self._in, 1 << 20) if ready else None
            if piece is None:
                raise TimeoutError(f"chromium has not answered {wanted} within {_TIMEOUT_S:g} s")
            if not piece:
                raise RuntimeError(f"chromium ended: {self._log.read_text(errors='replace')[-2000:]}")
            self._buffer += piece
        text, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        if "id" not in message:
            self.events(message.get("sessionId", "")).append(message)
            if message["method"] == "Page.javascriptDialogOpening":
                raise AssertionError(f"the page opened a dialog: {message['params'].get('message')}")
        return message


class Page:
    """One tab of a given size in CSS pixels; a phone when ``mobile``."""

    def __init__(self, browser: Chromium, width: int, height: int, *, mobile: bool = False) -> None:
        self._browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._target = target
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        # Keys reach the page that has the focus; tabs of a headless browser have none by themselves.
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)
        size = {"width": width, "height": height, "deviceScaleFactor": 2 if mobile else 1, "mobile": mobile}
        self.call("Emulation.setDeviceMetricsOverride", **size)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.call(method, session=self._session, **parameters)

    def open(self, path: Path, fragment: str = "") -> Page:
        """Load a file whole."""
        self._browser.events(self._session).clear()
        self.call("Page.navigate", url=path.as_uri() + fragment)
        self._browser.wait_for("Page.loadEventFired", self._session)
        return self

    def close(self) -> None:
        self._browser.call("Target.closeTarget", targetId=self._target)

    def evaluate(self, expression: str) -> Any:
        """Value of a JavaScript expression, awaited when it is a promise."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def key(self, name: str) -> None:
        code, text = _KEYS[name]
        parameters: dict[str, Any] = {"key": name, "windowsVirtualKeyCode": code}
        press = {"type": "keyDown", "text": text} if text else {"type": "rawKeyDown"}
        self.call("Input.dispatchKeyEvent", **press, **parameters)
        self.call("Input.dispatchKeyEvent", type="keyUp", **parameters)

    def click(self, element: str) -> None:
        """Click with the mouse in the middle of what a JavaScript expression gives."""
        # A tab behind another answers no mouse.
        self.call("Page.bringToFront")
        self.evaluate(f"({element}).scrollIntoView({{block: 'center', behavior: 'instant'}})")
        x, y = self.evaluate(
            f"(() => {{ const b = ({element}).getBoundingClientRect();"
            " return [b.left + Math.min(b.width, innerWidth) / 2, b.top + b.height / 2]; })()"
        )
        at = {"x": x, "y": y, "button": "left", "clickCount": 1}
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, **at)

    def emulate(self, media: str = "", **features: str) -> None:
        """Show the page as on paper (``print``), or to who prefers e.g. ``color_scheme="dark"``."""
        listed = [{"name": "prefers-" + k.replace("_", "-"), "value": v} for k, v in features.items()]
        self.call("Emulation.setEmulatedMedia", media=media, features=listed)

    def pdf(self) -> bytes:
        """The page as it is printed."""
        printed = self.call("Page.printToPDF", preferCSSPageSize=True)
        return base64.b64decode(printed["data"])

    def screenshot(self, *, whole: bool = False) -> bytes:
        """What is seen, or the whole length of the page, as PNG."""
        self.call("Page.bringToFront")
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        return base64.b64decode(shot["data"])

    def problems(self) -> list[str]:
        """All that a page should not have done since it was opened: console, errors, requests."""
        # Once it is drawn, it has told what it did before.
        self.screenshot()
        found = [text for event in self._browser.events(self._session) if (text := _problem(event))]
        # The page itself is asked for, once.
        return found[1:] if found and found[0].startswith("request file://") else found


def _problem(event: dict[str, Any]) -> str:
    parameters = event["params"]
    match event["method"]:
        case "Runtime.consoleAPICalled":
            said = [argument.get("value", argument.get("description")) for argument in parameters["args"]]
            return f"console.{parameters['type']}: {said}"
        case "Runtime.exceptionThrown":
            return f"exception: {parameters['exceptionDetails']}"
        case "Log.entryAdded":
            return f"{parameters['entry']['level']}: {parameters['entry']['text']}"
        # Data inside the page (a legend's colour bar) is asked for like a file, but of nobody.
        case "Network.requestWillBeSent" if not parameters["request"]["url"].startswith("data:"):
            return f"request {parameters['request']['url']}"
        case _:
            return ""


def _high(descriptor: int) -> int:
    """The same end of a pipe under a number that the browser does not want for itself."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(descriptor)
    return moved


def pdf_pages(pdf: bytes) -> int:
    """Number of pages of a PDF that keeps its page objects readable, as Chromium's does."""
    return len(re.findall(rb"/Type\s*/Page\b(?!s)", pdf))
