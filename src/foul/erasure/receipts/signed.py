"""A signed document: `{"signature": ..., "signed": {..., "key": ...}}`, canonical to the byte."""

import json
from collections.abc import Mapping
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from foul.erasure.receipts.canonical import canonical
from foul.erasure.receipts.keys import public_hex, verified

FORMAT = 1
"""Raised when a newer foul writes what an older one cannot check."""


class DamagedError(Exception):
    """A document that is not as it was written; the text says what is wrong with it."""


def sign(document: str, content: Mapping[str, Any], key: Ed25519PrivateKey) -> bytes:
    """The bytes of a document of this name. The signature is over the canonical form of `signed`,
    which holds the key itself."""
    signed = {**content, "document": document, "format": FORMAT, "key": public_hex(key)}
    return canonical({"signed": signed, "signature": key.sign(canonical(signed)).hex()})


def read_signed(document: str, data: bytes) -> dict[str, Any]:
    """The content of a document whose every byte is as it was signed.

    Raises:
        DamagedError: it is not.
    """
    try:
        whole = json.loads(data)
        signed, signature = whole["signed"], whole["signature"]
        key, found, version = signed["key"], signed["document"], signed["format"]
        same = canonical(whole) == data and whole.keys() == {"signed", "signature"}
    except (ValueError, KeyError, TypeError, RecursionError):
        raise DamagedError("it is not a signed document of foul") from None
    if found != document:
        raise DamagedError(f"it is a {found}, not a {document}")
    # Digits in capitals would give the same bytes.
    if not same or not _digits(key, 64) or not _digits(signature, 128):
        raise DamagedError("it is not in canonical form: it was edited")
    if not verified(key, signature, canonical(signed)):
        raise DamagedError("the signature does not fit: it was edited")
    if version != FORMAT:
        raise DamagedError(f"it has format {version}, this foul reads {FORMAT}")
    return dict(signed)


def _digits(text: Any, length: int) -> bool:
    return isinstance(text, str) and len(text) == length and set(text) <= set("0123456789abcdef")
