"""Figures: what they carry, what they escape, how few and undefined values look."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser

import pandas as pd
import pytest

from components.figures.gauge import gauge
from components.figures.map import map_figure
from components.figures.standalone import standalone
from components.figures.strips import strip
from components.theme import styles
from core.statistics import Estimate

ROLES = {"one": "base", "two": "aligned"}
STYLES = styles(ROLES)


def dots(n: int = 4) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "x": [0.1 * k for k in range(n)],
            "y": [0.2 * k for k in range(n)],
            "system": ["one", "two"] * (n // 2),
            "count": [1, 5] * (n // 2),
            "response_id": [f"r{k}" for k in range(n)],
        }
    )


def draw(frame: pd.DataFrame | None = None, **options: object) -> dict:
    texts = {f"r{k}": f"text {k}" for k in range(10)}
    return map_figure(dots() if frame is None else frame, STYLES, roles=ROLES, texts=texts, **options)


def test_each_dot_carries_its_response_id() -> None:
    one, two = draw()["data"]
    assert [c[0] for c in one["customdata"]] == ["r0", "r2"]
    assert [c[0] for c in two["customdata"]] == ["r1", "r3"]
    assert one["marker"]["color"] == STYLES["one"].colour
    assert one["marker"]["symbol"] != two["marker"]["symbol"]
    assert min(two["marker"]["size"]) > max(one["marker"]["size"]), "five equal texts make a larger dot"


def test_hover_is_short_wrapped_and_literal() -> None:
    long = "<b>x</b><script>alert(1)</script> " + "word" * 1250
    figure = map_figure(dots(), STYLES, roles=ROLES, texts={f"r{k}": long for k in range(4)})
    shown = figure["data"][0]["text"][0]
    lines = shown.split("<br>")
    assert all(len(html.unescape(line)) <= 46 for line in lines)
    assert len(html.unescape("".join(lines))) <= 161
    assert not re.search(r"<(?!br>)", shown)
    assert long not in str(figure), "the figure does not carry whole texts"


def test_the_hover_says_how_many_equal_texts_a_dot_holds() -> None:
    one, two = draw()["data"]
    assert "%{hovertext}" in one["hovertemplate"], "what is not in the template is not shown"
    assert one["hovertext"] == ["", ""]
    assert two["hovertext"] == ["<br>· 5 equal texts"] * 2


def test_a_system_name_is_escaped() -> None:
    nasty = "<img src=x onerror=alert(1)>"
    frame = dots().assign(system=nasty)
    figure = map_figure(frame, styles({nasty: "base"}), roles={nasty: "base"}, texts={})
    assert "<img" not in str(figure)


def test_a_map_in_a_file_of_its_own_has_the_data_and_no_live_tags() -> None:
    nasty = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"
    frame = dots().assign(system=nasty)
    figure = map_figure(frame, styles({nasty: "base"}), roles={nasty: "base"}, texts={"r0": nasty, "r1": "tea"})
    page = standalone(figure, f"title {nasty}", f"4 usable of 5 responses {nasty}").decode()
    tags: list[str] = []
    scripts: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            tags.append(tag)
            assert not {name for name, value in attrs if name.startswith("on") or name in ("src", "href")}

        def handle_data(self, data: str) -> None:
            if self.cdata_elem == "script":
                scripts.append(data)

    reader = Reader()
    reader.feed(page)
    assert set(tags) <= {"html", "head", "meta", "style", "title", "body", "div", "script"}
    drawn = scripts[-1]
    assert '"r0"' in drawn and "tea" in drawn and "4 usable of 5 responses" in drawn
    assert "<img" not in drawn and "\\u003cimg" not in drawn, "neither the page nor plotly gets a tag"
    assert "newPlot" in drawn and any("plotly.js" in script for script in scripts), "it draws without a network"
    assert figure["layout"]["height"] == 385, "the figure on the page is not changed"


def test_hiding_a_system_does_not_move_the_others() -> None:
    everything = dots(6)
    whole = draw(everything)
    part = draw(everything[everything["system"] == "one"], extent=everything)
    assert part["layout"]["xaxis"]["range"] == whole["layout"]["xaxis"]["range"]


def test_selection_and_new_dots_are_marked() -> None:
    fresh = pd.DataFrame({"x": [0.0], "y": [0.0], "response_id": ["n"]})
    figure = draw(selected=["r1"], fresh=fresh, faint=["one"])
    names = [t.get("name") for t in figure["data"]]
    assert names == ["one", "two", "new", None]
    assert figure["data"][-1]["x"] == [0.1]
    assert figure["data"][0]["marker"]["opacity"] < figure["data"][1]["marker"]["opacity"]


@pytest.mark.parametrize("n", [0, 2])
def test_few_dots_have_room(n: int) -> None:
    low, high = draw(dots(n))["layout"]["xaxis"]["range"]
    assert low < 0 < high


def test_colour_by_role_cluster_and_lens() -> None:
    assert draw(colour_by="role")["data"][1]["marker"]["color"] == styles({"a": "aligned"})["a"].colour
    colours = draw(colour_by="cluster", clusters={"r0": 0, "r2": -1})["data"][0]["marker"]["color"]
    assert len(set(colours)) == 2
    by_lens = draw(colour_by="words", values={"r0": 3.0, "r2": 4.0}, value_title="<b>Words")
    assert by_lens["layout"]["coloraxis"]["colorbar"]["title"]["text"] == "&lt;b&gt;Words"
    values = by_lens["data"][0]["marker"]
    assert values["color"] == [3.0, 4.0] and values["coloraxis"] == "coloraxis"


def test_an_undefined_value_is_a_dash_not_a_zero() -> None:
    figure = strip(["one", "two"], STYLES, {"one": 2.0, "two": float("nan")})
    assert list(figure["layout"]["yaxis"]["ticktext"]) == ["2", "–"]
    assert len([t for t in figure["data"] if t["marker"].get("symbol")]) == 1


def test_an_interval_is_drawn_around_its_value() -> None:
    figure = strip(["one"], STYLES, {"one": 2.0}, intervals={"one": (1.5, 3.0)}, form=".1f")
    bar = figure["data"][0]["error_x"]
    assert bar["array"] == [1.0] and bar["arrayminus"] == [0.5]


def test_the_gauge_shows_floor_run_and_ceiling() -> None:
    floor, now, top = (
        Estimate(0.3, 0.2, 0.4, 8),
        Estimate(0.5, float("nan"), float("nan"), 1),
        Estimate(0.7, 0.6, 0.8, 8),
    )
    figure = gauge(floor, now, top, base="base", teacher="aligned")
    assert sorted(t["x"][0] for t in figure["data"]) == [0.3, 0.5, 0.7]
    low, high = figure["layout"]["xaxis"]["range"]
    assert low == 0 and 0.8 < high <= 1
    nothing = Estimate(float("nan"), float("nan"), float("nan"), 0)
    assert all(not t["x"] for t in gauge(nothing, None, nothing, base="b", teacher="t")["data"])
