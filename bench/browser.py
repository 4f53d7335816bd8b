"""The real app in a real browser: for benchmarks, screenshots and end-to-end tests."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).resolve().parent.parent
# Quiet, no sandbox (it needs rights that containers lack), and nothing that reaches for the network.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def chromium_path() -> str | None:
    """The Chromium of this machine, if there is one."""
    return next((p for n in ("chromium", "chromium-browser", "google-chrome") if (p := shutil.which(n))), None)


@contextmanager
def chromium() -> Iterator[Browser]:
    """A headless Chromium. Raises `RuntimeError` where none is installed."""
    from playwright.sync_api import sync_playwright

    path = chromium_path()
    if path is None:
        raise RuntimeError("There is no Chromium on this machine: install it (apt-get install chromium).")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Server:
    """A running Streamlit server: its address, the file that its output goes to, and when it was started."""

    url: str
    log: Path
    process: subprocess.Popen[bytes]
    started: float

    def output(self) -> str:
        """Everything that the server has printed so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def healthy(self) -> bool:
        """Whether it answers its health check."""
        try:
            with urllib.request.urlopen(f"{self.url}/_stcore/health", timeout=1) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def wait(self, seconds: float = 90.0) -> None:
        """Wait until it answers. Raises `RuntimeError` with its output where it ended or stays silent."""
        end = time.monotonic() + seconds
        while not self.healthy():
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"The server did not start:\n{self.output()[-3000:]}")
            time.sleep(0.02)


@contextmanager
def serve(
    log: Path,
    *,
    script: Path = ROOT / "app.py",
    env: Mapping[str, str] | None = None,
    options: Sequence[str] = (),
    cwd: Path = ROOT,
) -> Iterator[Server]:
    """Start `streamlit run script` on a free port with the Python that runs this; it is ended with the block."""
    port = free_port()
    command = [sys.executable, "-m", "streamlit", "run", str(script), "--server.port", str(port)]
    command += ["--server.headless", "true", "--server.address", "localhost", *options]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", **(env or {})}
    with log.open("wb") as output:
        started = time.monotonic()
        process = subprocess.Popen(command, cwd=cwd, env=environment, stdout=output, stderr=subprocess.STDOUT)
        try:
            yield Server(f"http://localhost:{port}", log, process, started)
        finally:
            process.terminate()
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
