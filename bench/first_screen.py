"""Time to the first screen, against a bare one-line Streamlit page; and what the server needs for another prompt.

    python -m bench.first_screen [--json] [--runs 5] [--workspace DIR]

Both apps run in the same Chromium, turn by turn. The app counts as drawn when the map holds dots, the bare page
when its text is there.

    server start    from starting the process to drawn, the browser (without any cache) asking as soon as the
                    server answers
    page load       from asking a server that somebody has visited before to drawn, in a new browser profile
    page load again the same with the files of the page in the browser's cache
    prompt switch   at the browser's network: from the message that asks for another prompt to the message that
                    the script is finished; the server's work and its way through the loopback, no drawing

The times are medians over the runs. Without --workspace an empty one is taken: the demonstration is shown.
"""

from __future__ import annotations

import argparse
import base64
import json
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING, Any

from bench.browser import Server, chromium, serve

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

GOALS = {"server start": 2.0, "page load": 2.5}
SWITCH_GOAL = 150.0  # milliseconds
SWITCHES = 20
PATIENCE = 120_000
_BARE = "import streamlit as st; st.write('A bare page')"
_DRAWN = {
    "app": ".st-key-map .js-plotly-plot .scatterlayer .point, .st-key-map .js-plotly-plot .gl-canvas",
    "bare": "[data-testid=stMarkdownContainer] p",
}
_NEXT = ".st-key-Next-prompt button:visible"


@dataclass
class Frames:
    """When a browser asked its server for a run of the script, and when it heard of its end (seconds)."""

    asked: list[float] = field(default_factory=list)
    finished: list[float] = field(default_factory=list)

    def sent(self, event: Mapping[str, Any]) -> None:
        """Take a frame that the browser sent."""
        from streamlit.proto.BackMsg_pb2 import BackMsg

        message = BackMsg.FromString(base64.b64decode(event["response"]["payloadData"]))
        if message.WhichOneof("type") == "rerun_script":
            self.asked.append(event["timestamp"])

    def received(self, event: Mapping[str, Any]) -> None:
        """Take a frame that the browser received."""
        from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

        message = ForwardMsg.FromString(base64.b64decode(event["response"]["payloadData"]))
        if message.WhichOneof("type") == "script_finished":
            self.finished.append(event["timestamp"])

    def last(self) -> float:
        """Milliseconds of the last run."""
        asked = self.asked[-1]
        return 1000 * (next(t for t in self.finished if t > asked) - asked)


def drawn(page: Page, server: Server, which: str) -> float:
    """Seconds from asking for the page to drawn."""
    start = time.perf_counter()
    page.goto(server.url, wait_until="commit")
    page.wait_for_selector(_DRAWN[which], state="attached", timeout=PATIENCE)
    return time.perf_counter() - start


def _start(folder: Path, which: str, workspace: Path) -> Any:
    options = ("--browser.gatherUsageStats", "false")
    if which == "app":
        return serve(folder / "app.log", env={"OVERTON_WORKSPACE": str(workspace)}, options=options)
    script = folder / "bare.py"
    script.write_text(_BARE, encoding="utf-8")
    return serve(folder / "bare.log", script=script, cwd=folder, options=options)


def one_run(browser: Browser, folder: Path, which: str, workspace: Path) -> dict[str, float]:
    """The times of one app, from a start of its server."""
    times = {}
    with _start(folder, which, workspace) as server:
        with _context(browser) as context:
            server.wait()
            drawn(context.new_page(), server, which)
            times["server start"] = time.monotonic() - server.started
        with _context(browser) as context:
            times["page load"] = drawn(context.new_page(), server, which)
            times["page load again"] = drawn(context.new_page(), server, which)
    return times


def _context(browser: Browser) -> BrowserContext:
    return browser.new_context(viewport={"width": 1440, "height": 900})


def switches(browser: Browser, folder: Path, workspace: Path, n: int = SWITCHES) -> list[float]:
    """Milliseconds of going to the next prompt, n times."""
    times = []
    with _start(folder, "app", workspace) as server, _context(browser) as context:
        server.wait()
        page, frames = context.new_page(), Frames()
        cdp = context.new_cdp_session(page)
        cdp.on("Network.webSocketFrameSent", frames.sent)
        cdp.on("Network.webSocketFrameReceived", frames.received)
        cdp.send("Network.enable")
        drawn(page, server, "app")
        for _ in range(n):
            page.wait_for_timeout(700)  # let the browser finish drawing: it shares the processor
            known, before = len(frames.finished), len(frames.asked)
            page.click(_NEXT)
            end = time.monotonic() + 60
            while (len(frames.finished) == known or len(frames.asked) == before) and time.monotonic() < end:
                page.wait_for_timeout(20)
            times.append(frames.last())
    return times


def table(runs: Iterable[tuple[Mapping[str, float], Mapping[str, float]]]) -> dict[str, dict[str, float]]:
    """Medians of the app and of the bare page, and their ratio, by what was timed. `runs`: (app, bare) pairs."""
    pairs = list(runs)
    found = {}
    for what in pairs[0][0]:
        app, bare = (median(pair[k][what] for pair in pairs) for k in (0, 1))
        found[what] = {"app": app, "bare": bare, "ratio": app / bare}
        if what in GOALS:
            found[what]["goal"] = GOALS[what]
    return found


def measure(runs: int, workspace: Path | None) -> dict[str, Any]:
    """Everything, as one dictionary."""
    with tempfile.TemporaryDirectory() as temporary, chromium() as browser:
        folder = Path(temporary)
        space = workspace or folder / "workspace"
        one_run(browser, folder, "app", space)  # files come from the disk only once
        one_run(browser, folder, "bare", space)
        pairs = []
        for _ in range(runs):
            app = one_run(browser, folder, "app", space)
            pairs.append((app, one_run(browser, folder, "bare", space)))
        times = switches(browser, folder, space)
    slowest = quantiles(times, n=10)[-1]
    switch = {"median": median(times), "p90": slowest, "n": len(times), "goal": SWITCH_GOAL}
    return {"runs": runs, **table(pairs), "prompt switch ms": switch}


def _print(found: Mapping[str, Any]) -> None:
    print(f"{'':18}{'app':>9}{'bare':>9}{'ratio':>8}{'goal':>10}")
    for what, row in found.items():
        if isinstance(row, dict) and "ratio" in row:
            goal = f"≤ {row['goal']:.1f}" if "goal" in row else ""
            print(f"{what:18}{row['app']:>7.2f} s{row['bare']:>7.2f} s{row['ratio']:>8.2f}{goal:>10}")
    row = found["prompt switch ms"]
    print(f"prompt switch     {row['median']:>6.0f} ms, 90 % within {row['p90']:.0f} ms, n = {row['n']} ", end="")
    print(f"(goal: ≤ {row['goal']:.0f} ms)")


def main(argv: list[str] | None = None) -> int:
    """Measure and print; exit code 0 whatever the times are."""
    parser = argparse.ArgumentParser(prog="python -m bench.first_screen", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--workspace", type=Path, help="show the first dataset of this workspace")
    args = parser.parse_args(argv)
    found = measure(max(args.runs, 1), args.workspace)
    if args.json:
        print(json.dumps(found, indent=1))
    else:
        _print(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
