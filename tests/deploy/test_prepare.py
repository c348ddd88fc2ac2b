"""What is written for a server and for a site, and which mistakes are caught before."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from cryptography import x509
from small_runs import small_config

from foul.config.load import read_config_file
from foul.deploy.certificates import certificate_names, make_authority
from foul.deploy.folder import FederationFolder
from foul.deploy.plan import Plan
from foul.deploy.prepare import prepare_server, prepare_site, require_client_id, require_flower
from foul.errors import UserError

pytest.importorskip("flwr", reason="needs foul[flower]")


@pytest.fixture
def folder() -> Iterator[FederationFolder]:
    """Not pytest's own: sockets need short paths."""
    with TemporaryDirectory(prefix="foul-") as path:
        yield FederationFolder.at(Path(path) / "fed")


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    make_authority(tmp_path)
    return tmp_path / "ca.crt"


def test_a_server_gets_keys_certificates_and_a_plan(folder: FederationFolder) -> None:
    plan = prepare_server(
        folder, small_config(), ["north-0", "east-0"], names=["fl.example.org", "192.0.2.7"]
    )
    assert Plan.read(folder.plan) == plan
    assert len(set(plan.ports.values())) == 4
    keys = {folder.key(client).read_bytes() for client in plan.clients}
    assert len(keys) == 2
    assert len(folder.secret.read_bytes()) >= 32
    certificate = x509.load_pem_x509_certificate((folder.certificates / "server.crt").read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert set(names.get_values_for_type(x509.DNSName)) == {"fl.example.org", "localhost"}
    addresses = {str(address) for address in names.get_values_for_type(x509.IPAddress)}
    assert addresses == {"192.0.2.7", "127.0.0.1", "::1"}


def test_ipv6_addresses_are_in_the_certificate_and_have_brackets_before_a_port(
    folder: FederationFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foul.deploy.prepare.ports_from", lambda first, hosts: [1, 2, 3])
    plan = prepare_server(
        folder, small_config(), ["north-0"], host="[2001:db8::7]", names=["[2001:DB8::8]"]
    )
    assert plan.door == "[2001:db8::7]:1"
    found = certificate_names(folder.certificates / "server.crt")
    assert {"2001:db8::7", "2001:db8::8"} < set(found)
    proxy, node = (p.command for p in plan.processes if p.name in ("proxy", "supernode-north-0"))
    assert proxy[proxy.index("--host") + 1] == "2001:db8::7"
    assert node[node.index("--superlink") + 1] == plan.door


def test_nobody_else_can_read_what_is_secret(folder: FederationFolder) -> None:
    prepare_server(folder, small_config(), ["north-0"])
    secret = [path for path in folder.path.rglob("*") if path.suffix == ".key"]
    secret += [folder.secret, folder.key("north-0")]
    assert len(secret) == 4
    assert {path.stat().st_mode & 0o777 for path in secret} == {0o600}


def test_runs_by_its_configuration_wait_for_its_clients(folder: FederationFolder) -> None:
    prepare_server(folder, small_config(), ["north-0", "east-0"])
    config = read_config_file(folder.config)
    assert config.engine == "flower"
    assert config.flower.home == folder.home
    assert config.flower.clients == ("north-0", "east-0")
    same = {"engine": "local", "flower": small_config().flower}
    assert config.model_copy(update=same) == small_config()


def test_a_server_for_all_the_world_needs_a_name(folder: FederationFolder) -> None:
    with pytest.raises(UserError, match=r"--host 0\.0\.0\.0 .*Add --name"):
        prepare_server(folder, small_config(), [], host="0.0.0.0")
    assert not folder.path.exists()


def test_a_site_makes_its_own_key_and_knows_only_the_authority(
    folder: FederationFolder, authority: Path
) -> None:
    plan = prepare_site(folder, small_config(), "clinic-3", "fl.example.org:18443", authority)
    assert plan.superlink is None
    assert folder.authority.read_bytes() == authority.read_bytes()
    assert [path.name for path in folder.certificates.iterdir()] == ["ca.crt"]
    assert folder.key("clinic-3").is_file()
    assert read_config_file(folder.config) == small_config()


def test_a_site_finds_a_server_by_its_ipv6_address(
    folder: FederationFolder, authority: Path
) -> None:
    plan = prepare_site(folder, small_config(), "clinic-3", "[2001:db8::7]:18443", authority)
    assert plan.door == "[2001:db8::7]:18443"
    assert plan.door in plan.processes[1].command


@pytest.mark.parametrize("server", ["fl.example.org", "https://fl.example.org:1", "::1:18443"])
def test_what_is_no_address_is_refused(
    folder: FederationFolder, authority: Path, server: str
) -> None:
    with pytest.raises(UserError, match="is not HOST:PORT"):
        prepare_site(folder, small_config(), "clinic-3", server, authority)


def test_the_authoritys_private_key_is_not_taken(
    folder: FederationFolder, authority: Path, tmp_path: Path
) -> None:
    both = tmp_path / "both.pem"
    both.write_bytes(authority.read_bytes() + (tmp_path / "ca.key").read_bytes())
    for file, reason in (
        (both, "holds a private key"),
        (tmp_path / "ca.key", "is no certificate"),
        (tmp_path / "none.crt", "cannot be read"),
    ):
        with pytest.raises(UserError, match=reason):
            prepare_site(folder, small_config(), "clinic-3", "a:1", file)
    assert not folder.path.exists()


@pytest.mark.parametrize("name", ["", "../x", "a/b", "a b", 'a"b', "-a", ".a", "x" * 64, "a\n"])
def test_a_client_id_is_a_plain_name(name: str) -> None:
    with pytest.raises(UserError, match="cannot be a client's id"):
        require_client_id(name)


def test_without_flower_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"pip install 'foul\[flower\]'"):
        require_flower()


def test_elsewhere_than_on_linux_the_documentation_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    with pytest.raises(UserError, match="needs Linux"):
        require_flower()
