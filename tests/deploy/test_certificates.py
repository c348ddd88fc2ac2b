"""Certificates hold in real handshakes; keys are what Flower reads; private files are private."""

import socket
import ssl
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_ssh_private_key, load_ssh_public_key

from foul.deploy.certificates import (
    certificate_names,
    make_authority,
    make_node_key,
    make_server_certificate,
    renew_server_certificate,
    valid_until,
    write_private,
)


@pytest.fixture
def certificates(tmp_path: Path) -> Path:
    folder = tmp_path / "certs"
    folder.mkdir()
    make_authority(folder)
    make_server_certificate(folder, ["fl.example.org", "192.0.2.7"])
    return folder


def handshake(folder: Path, trusted: Path, name: str) -> str | None:
    """The TLS version of a connection to a server with this certificate, as a client that trusts
    this authority and expects this name."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "server.crt", folder / "server.key")
    client = ssl.create_default_context(cafile=str(trusted))
    ours, theirs = socket.socketpair()
    ours.settimeout(5)
    theirs.settimeout(5)

    def serve() -> None:
        try:
            server.wrap_socket(theirs, server_side=True).close()
        except (ssl.SSLError, OSError):
            theirs.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with client.wrap_socket(ours, server_hostname=name) as connection:
            return connection.version()
    finally:
        ours.close()
        thread.join()


@pytest.mark.parametrize("name", ["fl.example.org", "192.0.2.7", "localhost", "127.0.0.1", "::1"])
def test_a_client_that_trusts_the_authority_accepts_every_name(
    certificates: Path, name: str
) -> None:
    assert handshake(certificates, certificates / "ca.crt", name) == "TLSv1.3"


@pytest.mark.parametrize("name", ["other.example.org", "192.0.2.8"])
def test_a_name_that_is_not_in_the_certificate_is_refused(certificates: Path, name: str) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match=r"mismatch|not valid"):
        handshake(certificates, certificates / "ca.crt", name)


def test_another_authority_is_refused(certificates: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    make_authority(other)
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(certificates, other / "ca.crt", "localhost")


def test_a_renewed_certificate_has_the_same_names_and_another_key(certificates: Path) -> None:
    before = (certificates / "server.key").read_bytes()
    names = certificate_names(certificates / "server.crt")
    renew_server_certificate(certificates)
    assert (certificates / "server.key").read_bytes() != before
    assert certificate_names(certificates / "server.crt") == names
    assert {"fl.example.org", "192.0.2.7"} < set(names)
    assert handshake(certificates, certificates / "ca.crt", "fl.example.org") == "TLSv1.3"


def test_certificates_last_for_two_years_and_a_bit(certificates: Path) -> None:
    left = valid_until(certificates / "server.crt") - datetime.now(UTC)
    assert left.days in (824, 825)


def test_the_server_cannot_sign_for_others(certificates: Path, tmp_path: Path) -> None:
    false = tmp_path / "false"
    false.mkdir()
    (false / "ca.key").write_bytes((certificates / "server.key").read_bytes())
    (false / "ca.crt").write_bytes((certificates / "server.crt").read_bytes())
    make_server_certificate(false, [])
    chain = (false / "server.crt").read_bytes() + (certificates / "server.crt").read_bytes()
    (false / "server.crt").write_bytes(chain)
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(false, certificates / "ca.crt", "localhost")


def test_node_keys_are_p384_in_openssh_format(tmp_path: Path) -> None:
    make_node_key(tmp_path / "key", "north-0")
    private = load_ssh_private_key((tmp_path / "key").read_bytes(), None)
    text = (tmp_path / "key.pub").read_text()
    public = load_ssh_public_key(text.encode())
    assert isinstance(private, ec.EllipticCurvePrivateKey)
    assert isinstance(public, ec.EllipticCurvePublicKey)
    assert private.curve.name == "secp384r1"
    assert private.public_key().public_numbers() == public.public_numbers()
    assert text.endswith(" north-0\n")


def test_only_the_owner_reads_private_keys(certificates: Path, tmp_path: Path) -> None:
    make_node_key(tmp_path / "key", "north-0")
    for path in (certificates / "ca.key", certificates / "server.key", tmp_path / "key"):
        assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        write_private(tmp_path / "key", b"never over another key")
