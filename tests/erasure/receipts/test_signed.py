import json

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from foul.erasure.receipts.canonical import canonical
from foul.erasure.receipts.keys import public_hex
from foul.erasure.receipts.signed import DamagedError, read_signed, sign

KEY = Ed25519PrivateKey.generate()
DATA = sign("note", {"a": 1, "b": "ä"}, KEY)


def test_what_was_signed_is_read_back() -> None:
    content = read_signed("note", DATA)
    assert content == {"a": 1, "b": "ä", "document": "note", "format": 1, "key": public_hex(KEY)}


def test_every_changed_bit_is_found() -> None:
    for place in range(len(DATA)):
        for bit in range(8):
            changed = bytearray(DATA)
            changed[place] ^= 1 << bit
            with pytest.raises(DamagedError):
                read_signed("note", bytes(changed))


@pytest.mark.parametrize("data", [DATA[:-1], DATA + b"\n", b" " + DATA, DATA[1:], b"", b"[]"])
def test_added_and_missing_bytes_are_found(data: bytes) -> None:
    with pytest.raises(DamagedError):
        read_signed("note", data)


def test_something_added_outside_of_what_is_signed_is_found() -> None:
    with pytest.raises(DamagedError, match="canonical form"):
        read_signed("note", canonical(json.loads(DATA) | {"remark": "certified"}))


def test_a_document_is_not_taken_for_another() -> None:
    with pytest.raises(DamagedError, match="it is a note, not a head"):
        read_signed("head", DATA)


def test_somebody_elses_key_in_the_place_of_the_signers_is_found() -> None:
    whole = json.loads(DATA)
    whole["signed"]["key"] = public_hex(Ed25519PrivateKey.generate())
    with pytest.raises(DamagedError, match="signature does not fit"):
        read_signed("note", canonical(whole))


def test_a_format_of_the_future_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foul.erasure.receipts.signed.FORMAT", 2)
    data = sign("note", {}, KEY)
    monkeypatch.undo()
    with pytest.raises(DamagedError, match="format 2, this foul reads 1"):
        read_signed("note", data)
