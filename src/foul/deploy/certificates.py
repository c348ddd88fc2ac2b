"""An authority of our own, the server's certificate, and the keys that nodes are known by."""

import datetime
import ipaddress
import os
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAYS = 825
"""How long certificates are valid; the longest that all TLS libraries accept for a server."""
LOOPBACK = ("localhost", "127.0.0.1", "::1")
"""Names under which local processes reach the SuperLink."""


def make_authority(folder: Path) -> None:
    """A certificate authority in ca.crt and ca.key."""
    key = ec.generate_private_key(ec.SECP384R1())
    name = _name("foul federation")
    usage = _usage(key_cert_sign=True, crl_sign=True)
    certificate = (
        _builder(name, name, key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA384())
    )
    write_private(folder / "ca.key", _pem(key))
    (folder / "ca.crt").write_bytes(certificate.public_bytes(Encoding.PEM))


def make_server_certificate(folder: Path, names: Sequence[str]) -> None:
    """A certificate for these host names and addresses, signed by the authority in the folder, in
    server.crt and server.key. The loopback names are always among them."""
    authority_key = load_pem_private_key((folder / "ca.key").read_bytes(), None)
    assert isinstance(authority_key, ec.EllipticCurvePrivateKey)
    authority = _load(folder / "ca.crt")
    key = ec.generate_private_key(ec.SECP384R1())
    everyone = dict.fromkeys([*names, *LOOPBACK])
    certificate = (
        _builder(_name(next(iter(everyone))), authority.subject, key.public_key())
        .add_extension(x509.SubjectAlternativeName([*map(_alternative, everyone)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(digital_signature=True), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()),
            critical=False,
        )
        .sign(authority_key, hashes.SHA384())
    )
    write_private(folder / "server.key", _pem(key))
    (folder / "server.crt").write_bytes(certificate.public_bytes(Encoding.PEM))


def renew_server_certificate(folder: Path) -> None:
    """A new key and certificate for the same names, by the same authority."""
    names = certificate_names(folder / "server.crt")
    for name in ("server.key", "server.crt"):
        (folder / name).unlink()
    make_server_certificate(folder, names)


def certificate_names(path: Path) -> list[str]:
    """The host names and addresses in a certificate."""
    found = _load(path).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return [str(name.value) for name in found]


def valid_until(path: Path) -> datetime.datetime:
    """When a certificate ends."""
    return _load(path).not_valid_after_utc


def _load(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def make_node_key(path: Path, comment: str) -> None:
    """An ECDSA P-384 key pair in OpenSSH's format, as Flower wants it: `path` and `path`.pub."""
    key = ec.generate_private_key(ec.SECP384R1())
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    write_private(path, private)
    path.with_name(f"{path.name}.pub").write_text(f"{public.decode()} {comment}\n")


def write_private(path: Path, content: bytes) -> None:
    """A new file that only its owner can read, from its first moment on."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        # Clocks of sites differ a little.
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=DAYS))
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:64])])


def _alternative(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _usage(
    digital_signature: bool = False, key_cert_sign: bool = False, crl_sign: bool = False
) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        key_cert_sign=key_cert_sign,
        crl_sign=crl_sign,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
