"""The one way to write a JSON value as bytes, so that its hash is the value's.

UTF-8; no white space; keys sorted by code point; nothing escaped but the quote, the backslash and
control characters; integers in full, other numbers as the shortest text that gives the same double;
no NaN and no infinity; one line feed at the end.
"""

import hashlib
import json
from typing import Any


def canonical(value: Any) -> bytes:
    """The value's bytes.

    Raises:
        ValueError: it holds what JSON has no word for.
    """
    text = json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    return f"{text}\n".encode()


def sha256(data: bytes) -> str:
    """The hash as 64 hexadecimal digits, as `sha256sum` prints it."""
    return hashlib.sha256(data).hexdigest()
