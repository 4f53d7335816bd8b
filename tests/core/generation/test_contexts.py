"""What is read again after an edit, what is remembered, and that neither changes a single number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from core.generation.contexts import Contexts, common_length
from core.generation.network import SharedNetwork, network
from tests.core.generation.architectures import SHARING, VOCABULARY, make

LONG = [(k * 31 + 7) % VOCABULARY for k in range(150)]


@pytest.fixture(params=["llama", "gemma3"])
def net(request: pytest.FixtureRequest) -> SharedNetwork:
    import torch

    made = network(make(SHARING[request.param]()).to(torch.bfloat16), 10**9)
    assert isinstance(made, SharedNetwork)
    made.contexts = Contexts(10**9, block=16)
    return made


def read(net: SharedNetwork, ids: Sequence[int]) -> tuple[Any, int]:
    """Logits after a context and the number of tokens that were read for it."""
    import torch

    count, usual = 0, net._read

    def counting(layers: Any, block: Sequence[int], last: bool) -> Any:
        nonlocal count
        count += len(block)
        return usual(layers, block, last)

    net._read = counting  # type: ignore[method-assign]
    with torch.inference_mode():
        logits = net.read(ids)
    net._read = usual  # type: ignore[method-assign]
    return logits.clone(), count


def fresh(net: SharedNetwork, ids: Sequence[int]) -> Any:
    net.contexts.clear()
    return read(net, ids)[0]


def test_after_an_edit_only_the_rest_is_read_and_no_bit_differs(net: SharedNetwork) -> None:
    """Edits at the end, in the middle, at the beginning, longer and shorter: the same bits as reading anew."""
    edits = {
        "end": [*LONG[:-3], 5, 6, 7],
        "middle": [*LONG[:70], 9, 9, *LONG[70:]],
        "longer": [*LONG, 1, 2, 3, 4],
        "shorter": LONG[:-20],
        "on a border": LONG[:96],
        "beginning": [4, *LONG],
    }
    most = {"end": 6, "middle": 88, "longer": 10, "shorter": 2, "on a border": 16, "beginning": 151}
    for name, edited in edits.items():
        anew = fresh(net, edited)
        net.contexts.clear()
        read(net, LONG)
        logits, count = read(net, edited)
        assert (logits == anew).all(), name
        assert count == len(edited) - net.contexts.reused == most[name], name


def test_the_same_context_is_not_read_again(net: SharedNetwork) -> None:
    first, count = read(net, LONG)
    assert count == 150
    again, count = read(net, LONG)
    assert count == 0 and (again == first).all() and net.contexts.reused == 150


def test_several_contexts_are_remembered_and_the_nearest_is_used(net: SharedNetwork) -> None:
    other = [3, *LONG]
    read(net, LONG)
    read(net, other)
    assert read(net, [*LONG[:-1], 5])[1] == 6
    assert read(net, [*other[:-1], 5])[1] == 7
    assert len(net.contexts) == 4 and net.contexts.tokens == 150 + 151 + 150 + 151


def test_memory_is_bounded_and_the_oldest_leaves(net: SharedNetwork) -> None:
    read(net, LONG)
    one = net.contexts.nbytes
    net.contexts.limit = int(2.5 * one)
    for start in (3, 4, 5):
        read(net, [start, *LONG])
        assert net.contexts.nbytes <= net.contexts.limit
    assert len(net.contexts) == 2
    assert read(net, [5, *LONG])[1] == 0
    assert read(net, LONG)[1] == 150, "the oldest was forgotten"


def test_the_context_at_hand_stays_even_where_it_is_too_large(net: SharedNetwork) -> None:
    net.contexts.limit = 1
    assert read(net, LONG)[1] == 150
    assert read(net, LONG)[1] == 0
    assert len(net.contexts) == 1


def test_rows_do_not_write_into_the_context(net: SharedNetwork) -> None:
    import torch

    first = read(net, LONG)[0]
    with torch.inference_mode():
        net.begin(3)
        for k in range(20):
            net.step([[k], [k + 1], [k + 2]])
    again, count = read(net, [*LONG, 8])
    assert count == 151 - 144
    assert (again == fresh(net, [*LONG, 8])).all() and (first == fresh(net, LONG)).all()


def test_common_length() -> None:
    assert common_length([], [1]) == 0
    assert common_length([1, 2, 3], [1, 2, 4]) == 2
    assert common_length([1, 2], [1, 2, 3]) == 2
