import os
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from foul.erasure.receipts.keys import (
    fingerprint,
    load_private,
    make_key,
    public_hex,
    read_public,
    signing_key,
    spaced,
    verified,
)
from foul.errors import UserError


def test_a_store_has_one_key_that_only_its_owner_can_read(tmp_path: Path) -> None:
    key = signing_key(tmp_path)
    assert public_hex(signing_key(tmp_path)) == public_hex(key)
    assert (tmp_path / "keys/current.pem").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "keys").stat().st_mode & 0o777 == 0o700


def test_what_a_kill_left_of_a_key_is_removed(tmp_path: Path) -> None:
    (tmp_path / "keys").mkdir()
    leftover = tmp_path / f"keys/.current.pem.{os.getpid()}.tmp"
    leftover.write_text("half a key")
    signing_key(tmp_path)
    assert not leftover.exists()


def test_the_public_half_lies_beside_it_under_its_fingerprint(tmp_path: Path) -> None:
    public = public_hex(signing_key(tmp_path))
    (file,) = (tmp_path / "keys").glob("*.pub.pem")
    assert read_public(file) == public
    assert file.name == f"{fingerprint(public)[:16]}.pub.pem"
    assert b"PRIVATE" not in file.read_bytes()


def test_a_signature_is_of_these_bytes_by_this_key(tmp_path: Path) -> None:
    key, other = make_key(tmp_path / "one.pem"), make_key(tmp_path / "two.pem")
    signature = key.sign(b"facts").hex()
    assert verified(public_hex(key), signature, b"facts")
    assert not verified(public_hex(key), signature, b"fact")
    assert not verified(public_hex(other), signature, b"facts")
    assert not verified("no key", signature, b"facts")
    assert not verified(public_hex(key), signature[:-2], b"facts")


def test_a_key_that_others_can_read_is_not_used(tmp_path: Path) -> None:
    signing_key(tmp_path)
    path = tmp_path / "keys/current.pem"
    path.chmod(0o640)
    with pytest.raises(UserError, match=r"Others can read .*mode 640.*chmod 600"):
        signing_key(tmp_path)


@pytest.mark.parametrize("content", [b"", b"rubbish", b"-----BEGIN PRIVATE KEY-----\n"])
def test_a_damaged_private_key_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "current.pem"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(UserError, match=r"current\.pem does not hold an Ed25519 private key"):
        load_private(path)


def test_a_missing_key_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none\.pem cannot be read \(No such file"):
        load_private(tmp_path / "none.pem")
    with pytest.raises(UserError, match=r"none\.pem cannot be read \(No such file"):
        read_public(tmp_path / "none.pem")


def test_a_private_key_or_another_kind_is_no_public_key(tmp_path: Path) -> None:
    make_key(tmp_path / "own.pem")
    other = tmp_path / "other.pem"
    curve = generate_private_key(SECP256R1()).public_key()
    other.write_bytes(curve.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    for path in (tmp_path / "own.pem", other):
        with pytest.raises(UserError, match="does not hold an Ed25519 public key"):
            read_public(path)


def test_fingerprints_are_read_in_groups() -> None:
    assert spaced("0123456789abcdef01") == "01234567 89abcdef 01"
