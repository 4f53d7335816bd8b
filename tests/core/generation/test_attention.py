"""A context that is shared gives the logits that the library gives, for many architectures."""

from __future__ import annotations

from typing import Any

import pytest

from core.generation.contexts import Contexts
from core.generation.network import PlainNetwork, SharedNetwork, network
from tests.core.generation.architectures import PLAIN, SHARING, VOCABULARY, make

CONTEXT = [(k * 31 + 7) % VOCABULARY for k in range(41)]
ROWS = [[(k * 17 + row * 5 + 3) % VOCABULARY for k in range(12)] for row in range(3)]


def library(config: Any, row: list[int]) -> Any:
    """Logits (tokens, vocabulary) of the library for the context and one row, without a cache."""
    import torch

    with torch.inference_mode():
        logits = make(config)(torch.tensor([CONTEXT + row])).logits[0]
    return logits[len(CONTEXT) - 1 :]


def ours(net: SharedNetwork | PlainNetwork, widths: list[int]) -> Any:
    """The same for all rows together, their tokens in steps of given widths."""
    import torch

    with torch.inference_mode():
        found = [net.read(CONTEXT)[None].expand(len(ROWS), 1, -1)]
        net.begin(len(ROWS))
        start = 0
        for width in widths:
            found.append(net.step([row[start : start + width] for row in ROWS]))
            start += width
        return torch.cat(found, 1)


@pytest.mark.parametrize("name", [*SHARING, *PLAIN])
def test_logits_equal_the_library(name: str) -> None:
    import torch

    config = {**SHARING, **PLAIN}[name]
    net = network(make(config()), 10**9)
    assert isinstance(net, SharedNetwork if name in SHARING else PlainNetwork)
    for widths in ([1] * 12, [3, 1, 5, 3]) if name in SHARING else ([1] * 12,):
        net.contexts = Contexts(10**9, block=16)
        found = ours(net, widths)
        for k, row in enumerate(ROWS):
            expected = library(config(), row)
            assert expected.std() > 0.05, "the planted weights must matter"
            torch.testing.assert_close(found[k], expected, atol=2e-3, rtol=2e-3)


@pytest.mark.parametrize("name", ["llama", "gemma2"])
def test_rows_that_leave_do_not_change_the_others(name: str) -> None:
    import torch

    net = network(make(SHARING[name]()), 10**9)
    whole = ours(net, [1] * 12)
    with torch.inference_mode():
        net.read(CONTEXT)
        net.begin(3)
        for k in range(5):
            net.step([[row[k]] for row in ROWS])
        net.select([2])
        for k in range(5, 12):
            found = net.step([[ROWS[2][k]]])
            torch.testing.assert_close(found[0, 0], whole[2, k + 1], atol=1e-4, rtol=1e-4)


def test_a_wrong_attention_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where sharing would give other logits than the library, the library's own way is taken."""
    from core.generation import attention

    monkeypatch.setattr(attention, "_window", lambda module, options: 3)
    assert isinstance(network(make(SHARING["llama"]()), 10**9), PlainNetwork)


def test_the_context_is_kept_once_whatever_the_number_of_rows() -> None:
    net = network(make(SHARING["llama"]()), 10**9)
    assert isinstance(net, SharedNetwork)
    sizes = []
    import torch

    for rows in (1, 3):
        with torch.inference_mode():
            net.read(CONTEXT)
            net.begin(rows)
            net.step([[5]] * rows)
        assert net._cache is not None
        sizes.append(net._cache.context.nbytes)
    layers, heads, size, width = 2, 2, 8, 4
    assert sizes == [len(CONTEXT) * layers * 2 * heads * size * width] * 2


@pytest.mark.parametrize("kind", ["longrope", "dynamic", "default"])
def test_positions_that_depend_on_what_is_read_at_once_are_read_at_once(kind: str) -> None:
    """Beyond the original length such models encode positions otherwise, for all that is read together."""
    import torch
    from transformers import LlamaConfig, Phi3Config

    from tests.core.generation.architectures import _SIZE

    sizes = {**_SIZE, "max_position_embeddings": 256}
    if kind == "longrope":
        factors = {"short_factor": [1.0] * 4, "long_factor": [4.0] * 4, "original_max_position_embeddings": 40}
        config = Phi3Config(**sizes, original_max_position_embeddings=40,
                            rope_parameters={"rope_type": "longrope", "rope_theta": 10000.0, **factors})  # fmt: skip
    else:
        more = {"factor": 4.0, "original_max_position_embeddings": 40} if kind == "dynamic" else {}
        config = LlamaConfig(**sizes, rope_parameters={"rope_type": kind, "rope_theta": 10000.0, **more})
    net = network(make(config), 10**9)
    assert isinstance(net, SharedNetwork)
    assert (net.contexts.block > 10**6) == (kind != "default")
    ids = [(k * 31 + 7) % VOCABULARY for k in range(60)]
    with torch.inference_mode():
        found = net.read(ids)[0]
        expected = make(type(config).from_dict(config.to_dict()))(torch.tensor([ids])).logits[0, -1]
    torch.testing.assert_close(found, expected, atol=2e-3, rtol=2e-3)
