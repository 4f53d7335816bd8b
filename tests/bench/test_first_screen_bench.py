"""The plumbing of the benchmark of the first screen; its times are no test."""

from __future__ import annotations

import base64

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from bench import first_screen


def event(message: BackMsg | ForwardMsg, at: float) -> dict[str, object]:
    return {"timestamp": at, "response": {"payloadData": base64.b64encode(message.SerializeToString()).decode()}}


def asked() -> BackMsg:
    message = BackMsg()
    message.rerun_script.query_string = ""
    message.rerun_script.SetInParent()
    return message


def finished() -> ForwardMsg:
    message = ForwardMsg()
    message.script_finished = ForwardMsg.FINISHED_SUCCESSFULLY
    return message


def test_a_switch_lasts_from_the_question_to_the_end_of_its_own_script():
    frames = first_screen.Frames()
    frames.received(event(finished(), 1.0))
    frames.sent(event(asked(), 2.0))
    other = ForwardMsg()
    other.session_status_changed.SetInParent()
    frames.received(event(other, 2.05))
    frames.received(event(finished(), 2.125))
    frames.received(event(finished(), 9.0))
    assert frames.last() == pytest.approx(125.0)


def test_ratios_are_those_of_the_medians():
    runs = [
        ({"server start": a, "page load again": 1.0}, {"server start": b, "page load again": 2.0})
        for a, b in ((4.0, 2.0), (3.0, 1.0), (90.0, 1.5))
    ]
    found = first_screen.table(runs)
    assert found["server start"] == {"app": 4.0, "bare": 1.5, "ratio": pytest.approx(4 / 1.5), "goal": 2.0}
    assert "goal" not in found["page load again"]
