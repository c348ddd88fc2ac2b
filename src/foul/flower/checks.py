"""What a node says is checked before it is used: it may be broken, or somebody else."""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from safetensors import SafetensorError

from foul.federation.codec import decode_tensors
from foul.federation.messages import ClientInfo, Reply, Request
from foul.flower.numbers import unfit
from foul.flower.outputs import unfit_outputs
from foul.flower.parcel import PROTOCOL, Parcel

_LONGEST_ERROR = 300
"""Letters of a client's error that are kept: it goes to logs and reports."""


class _Said(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Header(_Said):
    """What a reply says beside its tensors."""

    client: str
    numbers: dict[str, Any]
    flops: int = Field(ge=0)
    seconds: float = Field(ge=0, allow_inf_nan=False)
    error: str


class NodeFacts(_Said):
    """What a node tells of itself when it is asked who it is."""

    protocol: int
    version: str
    client: str = Field(min_length=1, max_length=100)
    domain: str = Field(min_length=1, max_length=200)
    samples: dict[str, int]
    classes: list[str] = Field(min_length=1)
    image_size: int = Field(ge=1, le=4096)

    @property
    def info(self) -> ClientInfo:
        return ClientInfo(self.client, self.domain, self.samples)


def read_reply(request: Request, parcel: Parcel, largest: int) -> Reply:
    """The reply in this parcel; what is no proper reply becomes one with an error.

    Args:
        request: what was asked; its client is empty if that is what is asked.
        parcel: what came back.
        largest: bytes that a reply may have.
    """
    client = request.client
    size = len(parcel.header) + len(parcel.tensors)
    if size > largest:
        return Reply(client, error=f"its reply has {size} bytes, at most {largest} are taken")
    try:
        said = _Header.model_validate(json.loads(parcel.header))
        tensors = decode_tensors(parcel.tensors)
    except (ValidationError, SafetensorError, ValueError, RecursionError) as error:
        return Reply(client, error=f"its reply is garbage ({_short(error)})")
    if client and said.client != client:
        return Reply(client, error=f"it answered as '{said.client[:100]}'")
    problem = (
        said.error[:_LONGEST_ERROR]
        or unfit(request, said.numbers)
        or unfit_outputs(request, tensors)
    )
    return Reply(said.client, tensors, said.numbers, said.flops, said.seconds, problem)


def read_facts(numbers: Mapping[str, Any]) -> NodeFacts:
    """What a node tells of itself.

    Raises:
        ValueError: it is no description of a node, or of one with another protocol.
    """
    try:
        facts = NodeFacts.model_validate(dict(numbers))
    except ValidationError as error:
        raise ValueError(f"it does not say who it is ({_short(error)})") from error
    if facts.protocol != PROTOCOL:
        raise ValueError(f"its foul {facts.version} speaks another protocol; install the same foul")
    if set(facts.samples) != {"train", "validation", "test"} or min(facts.samples.values()) < 0:
        raise ValueError("it does not say how many samples it has")
    return facts


def _short(error: Exception) -> str:
    """The first complaint, without the value: it could be long."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return str(error)[:_LONGEST_ERROR]
