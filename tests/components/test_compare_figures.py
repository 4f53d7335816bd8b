"""The figure of differences."""

from __future__ import annotations

from components.figures.differences import differences
from components.theme import Style
from core.statistics import Estimate

A, B = Style("#0072B2", "square", "■"), Style("#E69F00", "circle", "●")
NAN = float("nan")


def test_a_dot_has_the_colour_and_shape_of_the_system_that_is_higher():
    dots = differences([2.0, -1.0, 0.0], ["p", "q", "r"], Estimate(0.3, -1, 2, 3), A, B)["data"][0]
    assert dots["marker"]["color"][:2] == [A.colour, B.colour]
    assert dots["marker"]["symbol"][:2] == ["square", "circle"]
    assert dots["marker"]["color"][2] not in (A.colour, B.colour)


def test_undefined_differences_are_left_out_and_the_interval_is_drawn():
    dots, mean = differences([NAN, 1.0, 3.0], ["p", "q", "r"], Estimate(2.0, 1.0, 3.0, 2), A, B)["data"]
    assert dots["x"] == [1.0, 3.0]
    assert (mean["error_x"]["array"], mean["error_x"]["arrayminus"]) == ([1.0], [1.0])


def test_nothing_is_drawn_where_nothing_is_defined():
    assert differences([NAN], ["p"], Estimate(NAN, NAN, NAN, 0), A, B)["data"] == []


def test_one_prompt_has_a_mean_and_no_interval():
    _, mean = differences([1.0], ["p"], Estimate(1.0, NAN, NAN, 1), A, B)["data"]
    assert "error_x" not in mean


def test_zero_stands_in_the_middle_and_hover_renders_nothing():
    figure = differences([1.0], ["<b>x</b>"], Estimate(1.0, NAN, NAN, 1), A, B)
    low, high = figure["layout"]["xaxis"]["range"]
    assert low == -high
    assert figure["data"][0]["text"] == ["&lt;b&gt;x&lt;/b&gt;"]
