"""Requests and replies as bytes: a JSON header and safetensors, never pickle."""

import json
from typing import Any

from safetensors.torch import load, save

from foul.federation.messages import Reply, Request, Tensors


def encode_tensors(tensors: Tensors) -> bytes:
    return save(tensors) if tensors else b""


def decode_tensors(data: bytes) -> Tensors:
    """Tensors in memory of their own: at odd addresses, vector libraries may round differently."""
    return {name: tensor.clone() for name, tensor in load(data).items()} if data else {}


def encode_request(request: Request) -> bytes:
    """Everything but the tensors, which many requests share."""
    return json.dumps(
        {
            "client": request.client,
            "task": request.task,
            "round": request.round,
            "settings": request.settings,
        }
    ).encode()


def decode_request(header: bytes, tensors: Tensors) -> Request:
    values: dict[str, Any] = json.loads(header)
    return Request(tensors=tensors, **values)


def encode_reply(reply: Reply) -> bytes:
    """Everything but the tensors."""
    return json.dumps(
        {
            "client": reply.client,
            "numbers": reply.numbers,
            "flops": reply.flops,
            "seconds": reply.seconds,
            "error": reply.error,
        }
    ).encode()


def decode_reply(header: bytes, tensors: Tensors) -> Reply:
    values: dict[str, Any] = json.loads(header)
    return Reply(tensors=tensors, **values)
