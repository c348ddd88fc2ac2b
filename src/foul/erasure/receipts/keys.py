"""The key pair of a store: made once, readable by its owner alone, replaced by rotation.

keys/current.pem          the private key that signs
keys/next.pem             its successor, while a rotation is under way
keys/FINGERPRINT.pub.pem  public keys, those of the past too: to give away
"""

import os
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from foul.erasure.receipts.canonical import sha256
from foul.errors import UserError
from foul.runs.atomic import not_written, remove_leftovers, replacing

FOLDER = "keys"
CURRENT = "current.pem"
NEXT = "next.pem"


def signing_key(store: Path) -> Ed25519PrivateKey:
    """The store's private key, made if the store has none yet.

    Raises:
        UserError: the key cannot be used, or others can read it.
        MachineError: it cannot be written.
    """
    path = store / FOLDER / CURRENT
    if not path.exists():
        make_key(path)
    return load_private(path)


def make_key(path: Path) -> Ed25519PrivateKey:
    """A new private key in a file of its own, its public half beside it."""
    key = Ed25519PrivateKey.generate()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Half a private key, where a process was killed while it wrote one.
        remove_leftovers(path.parent)
    except OSError as error:
        raise not_written(path, error) from error
    public = path.parent / f"{fingerprint(public_hex(key))[:16]}.pub.pem"
    with replacing(public) as temporary:
        temporary.write_bytes(
            key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        )
    with replacing(path) as temporary:
        # Nobody else can read it, not even for the moment before a chmod.
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(handle, "wb") as file:
            file.write(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return key


def load_private(path: Path) -> Ed25519PrivateKey:
    """A private key from its file.

    Raises:
        UserError: it is missing, not such a key, or others can read it.
    """
    try:
        mode, data = path.stat().st_mode, path.read_bytes()
    except OSError as error:
        raise UserError(f"The key {path} cannot be read ({error.strerror})") from error
    if mode & 0o077:
        raise UserError(
            f"Others can read the key {path} (mode {mode & 0o777:o})",
            f"If nobody has: chmod 600 {path}. Else `foul erase rotate-key`, after that.",
        )
    try:
        key = load_pem_private_key(data, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise UserError(
            f"{path} does not hold an Ed25519 private key", "Put it back from a backup."
        )
    return key


def read_public(path: Path) -> str:
    """A public key file as hexadecimal digits.

    Raises:
        UserError: it is missing or no such key.
    """
    try:
        key = load_pem_public_key(path.read_bytes())
    except OSError as error:
        raise UserError(f"The key {path} cannot be read ({error.strerror})") from error
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise UserError(
            f"{path} does not hold an Ed25519 public key",
            "Ask for the file keys/*.pub.pem of the store that issued the receipt.",
        )
    return key.public_bytes(Encoding.Raw, PublicFormat.Raw).hex()


def public_hex(key: Ed25519PrivateKey) -> str:
    """The public half as hexadecimal digits."""
    return key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex()


def fingerprint(public: str) -> str:
    """The hash of a public key, which is what people compare."""
    return sha256(bytes.fromhex(public))


def spaced(digits: str) -> str:
    """Digits in groups of eight, to be read aloud."""
    return " ".join(digits[i : i + 8] for i in range(0, len(digits), 8))


def verified(public: str, signature: str, data: bytes) -> bool:
    """Whether the holder of the key signed these bytes; false for what is no key or signature."""
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public))
        key.verify(bytes.fromhex(signature), data)
    except (ValueError, InvalidSignature):
        return False
    return True
