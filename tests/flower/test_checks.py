import json

import torch
from hypothesis import given
from hypothesis import strategies as st

from foul.federation.codec import encode_reply, encode_tensors
from foul.federation.messages import Reply, Request
from foul.flower.checks import read_reply
from foul.flower.parcel import Parcel

PLENTY = 10**9
ASKED = Request("a", "latents", 1, {}, {})
"""A task that answers with tensors alone, of which nothing is known before."""
OUTPUTS = Request("a", "outputs", 1, {"head.weight": torch.zeros(3, 8)}, {"splits": ["test"]})
VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


def test_a_proper_reply_is_read_as_it_was_written() -> None:
    reply = Reply("a", {"x": torch.ones(2, 3)}, {"samples": 3, "deep": [{"y": 0.5}]}, 7, 1.5)
    read = read_reply(ASKED, Parcel(encode_reply(reply), encode_tensors(reply.tensors)), PLENTY)
    assert read.tensors["x"].equal(reply.tensors["x"])
    assert (read.numbers, read.flops, read.seconds) == (reply.numbers, 7, 1.5)
    assert not read.error


@given(header=st.binary(), tensors=st.binary())
def test_no_bytes_can_raise(header: bytes, tensors: bytes) -> None:
    assert "garbage" in read_reply(ASKED, Parcel(header, tensors), PLENTY).error


@given(
    key=st.sampled_from(["client", "numbers", "flops", "seconds", "error", "more"]), value=VALUES
)
def test_no_value_can_raise_or_pass_for_another_kind(key: str, value: object) -> None:
    proper = {"client": "a", "numbers": {}, "flops": 0, "seconds": 0.0, "error": ""}
    reply = read_reply(ASKED, Parcel(json.dumps(proper | {key: value}).encode()), PLENTY)
    assert reply.client == "a"
    assert isinstance(reply.error, str)
    assert isinstance(reply.numbers, dict)
    assert type(reply.flops) is int
    assert reply.flops >= 0
    assert reply.seconds >= 0
    assert key != "more" or reply.error


def test_a_deep_nest_is_garbage() -> None:
    deep = b'{"numbers": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    assert "garbage" in read_reply(ASKED, Parcel(deep), PLENTY).error


def test_tensors_with_other_names_than_were_asked_for_are_an_error_of_that_client() -> None:
    for name, told in (("test", ""), ("train", "tensor 'test' is missing")):
        reply = Reply("a", {name: torch.zeros(2, 3)})
        parcel = Parcel(encode_reply(reply), encode_tensors(reply.tensors))
        assert read_reply(OUTPUTS, parcel, PLENTY).error == told


def test_a_long_error_is_cut() -> None:
    reply = Reply("a", error="x" * 10_000)
    assert len(read_reply(ASKED, Parcel(encode_reply(reply)), PLENTY).error) < 500
