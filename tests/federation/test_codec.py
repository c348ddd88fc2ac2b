import json
from typing import Any

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from foul.federation.codec import (
    decode_reply,
    decode_request,
    decode_tensors,
    encode_reply,
    encode_request,
    encode_tensors,
)
from foul.federation.messages import Reply, Request, Tensors, payload_bytes

numbers = st.dictionaries(
    st.text(),
    st.recursive(
        st.integers() | st.floats() | st.text() | st.booleans(),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
        max_leaves=5,
    ),
    max_size=3,
)
dtypes = st.sampled_from([torch.float32, torch.bfloat16, torch.float64, torch.int64, torch.uint8])
shapes = st.lists(st.integers(0, 3), max_size=3)


@st.composite
def tensors(draw: st.DrawFn) -> Tensors:
    names = draw(st.lists(st.text(min_size=1), max_size=3, unique=True))
    return {name: (9 * torch.rand(draw(shapes))).to(draw(dtypes)) for name in names}


def same(one: Any, other: Any) -> bool:
    """Equal as JSON: NaN equals NaN."""
    return json.dumps(one) == json.dumps(other)


def same_tensors(one: Tensors, other: Tensors) -> bool:
    return one.keys() == other.keys() and all(
        one[name].dtype == other[name].dtype and torch.equal(one[name], other[name]) for name in one
    )


@settings(deadline=None)
@given(tensors())
def test_tensors_cross_bit_for_bit(sent: Tensors) -> None:
    assert same_tensors(decode_tensors(encode_tensors(sent)), sent)


def test_no_tensors_are_no_bytes() -> None:
    assert encode_tensors({}) == b""
    assert decode_tensors(b"") == {}


@settings(deadline=None)
@given(st.text(), st.text(), st.integers(), numbers, tensors())
def test_requests_cross_unchanged(
    client: str, task: str, round: int, values: dict[str, Any], sent: Tensors
) -> None:
    request = Request(client, task, round, sent, values)
    back = decode_request(encode_request(request), sent)
    assert (back.client, back.task, back.round) == (client, task, round)
    assert same(back.settings, values)
    assert back.bytes == request.bytes


@settings(deadline=None)
@given(st.text(), numbers, st.integers(0), st.floats(0, 1e9), st.text(), tensors())
def test_replies_cross_unchanged(
    client: str, values: dict[str, Any], flops: int, seconds: float, error: str, sent: Tensors
) -> None:
    reply = Reply(client, sent, values, flops, seconds, error)
    back = decode_reply(encode_reply(reply), decode_tensors(encode_tensors(sent)))
    assert (back.client, back.flops, back.seconds, back.error) == (client, flops, seconds, error)
    assert same(back.numbers, values)
    assert same_tensors(back.tensors, sent)
    assert back.bytes == reply.bytes


def test_payload_bytes_are_elements_and_json() -> None:
    sent = {"a": torch.zeros(3, 4, dtype=torch.float64), "b": torch.zeros((), dtype=torch.int64)}
    assert payload_bytes(sent, {"x": [1, 2]}) == 12 * 8 + 8 + len('{"x": [1, 2]}')
