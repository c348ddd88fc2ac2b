"""Write what a federation needs into a new folder: certificates, keys, configuration, plan."""

import importlib.util
import re
import secrets
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from cryptography import x509

from foul.config.load import config_to_toml
from foul.config.schema import Config
from foul.deploy.addresses import EVERYWHERE, LOCAL, plain_host, split_port, with_port
from foul.deploy.certificates import (
    make_authority,
    make_node_key,
    make_server_certificate,
    write_private,
)
from foul.deploy.folder import FederationFolder
from foul.deploy.plan import (
    CONNECTION,
    Plan,
    driver_config,
    plan_server,
    plan_site,
)
from foul.deploy.ports import ports_from
from foul.errors import UserError
from foul.runs.atomic import write_text

SECRET_BYTES = 48
CLIENT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
"""It becomes the name of a folder, of a log and of a node."""


def require_flower() -> None:
    """
    Raises:
        UserError: Flower is not installed, or this is not Linux.
    """
    if sys.platform != "linux":
        raise UserError(
            "`foul federation` needs Linux", "Start the programs yourself: docs/deploy.md."
        )
    if importlib.util.find_spec("flwr") is None:
        raise UserError("Flower is not installed", "pip install 'foul[flower]'")


def prepare_server(
    folder: FederationFolder,
    config: Config,
    clients: Sequence[str],
    *,
    host: str = LOCAL,
    names: Sequence[str] = (),
    port: int = 0,
    environment: Mapping[str, str] | None = None,
) -> Plan:
    """A server with the nodes of these clients beside it (or none: they are elsewhere).

    Args:
        host: where the proxy listens for nodes.
        names: host names and addresses by which nodes know this machine.
        port: of the proxy; SuperLink and nodes take the next ones. 0: any that are free.

    Raises:
        UserError: the folder is in use, or a port is, or no certificate could be right.
    """
    require_flower()
    host, names = plain_host(host), [plain_host(name) for name in names]
    if host in EVERYWHERE and not names:
        raise UserError(
            f"--host {host} says nothing about the name of this machine",
            "Add --name with the host name or address by which nodes reach it.",
        )
    ports = ports_from(port, [host, *[LOCAL] * (len(clients) + 1)])
    folder.create(clients)
    make_authority(folder.certificates)
    make_server_certificate(folder.certificates, [*names, *_own_name(host)])
    write_private(folder.secret, secrets.token_bytes(SECRET_BYTES))
    for client in clients:
        make_node_key(folder.key(client), client)
    write_text(folder.config, config_to_toml(driven_by(folder, config, clients)))
    plan = plan_server(folder, clients, host, ports, environment or {})
    write_text(folder.home / "config.toml", driver_config(folder, plan))
    # Last: a folder with a plan is complete.
    plan.write(folder.plan)
    return plan


def driven_by(folder: FederationFolder, config: Config, clients: Sequence[str]) -> Config:
    """The configuration of runs on this federation: new ones wait for all clients here."""
    own = {"home": folder.home, "superlink": CONNECTION}
    flower = config.flower.model_copy(update=own | ({"clients": tuple(clients)} if clients else {}))
    return config.model_copy(update={"engine": "flower", "flower": flower})


def prepare_site(
    folder: FederationFolder,
    config: Config,
    client: str,
    server: str,
    authority: Path,
    *,
    data: Sequence[str] = (),
    port: int = 0,
    environment: Mapping[str, str] | None = None,
) -> Plan:
    """One client's node, for a server elsewhere. Its key is made here and never leaves.

    Args:
        server: host and port of the server's proxy.
        authority: the server's ca.crt.
        data: options of `foul node` that say where the client's images are.

    Raises:
        UserError: the folder or the port is in use, or the id, address or certificate is not one.
    """
    require_flower()
    require_client_id(client)
    door = with_port(*split_port(server))
    certificate = _certificate(authority)
    (own,) = ports_from(port, [LOCAL])
    folder.create([client])
    folder.authority.write_bytes(certificate)
    make_node_key(folder.key(client), client)
    write_text(folder.config, config_to_toml(config))
    plan = plan_site(folder, client, door, own, data, environment or {})
    plan.write(folder.plan)
    return plan


def require_client_id(client: str) -> None:
    """
    Raises:
        UserError: it cannot be the name of a folder and of a node.
    """
    if not CLIENT_ID.fullmatch(client):
        raise UserError(
            f"'{client}' cannot be a client's id",
            "Use letters, digits, dots, dashes and underscores, at most 63.",
        )


def _own_name(host: str) -> list[str]:
    return [] if host in EVERYWHERE else [host]


def _certificate(path: Path) -> bytes:
    """The authority's certificate, and nothing else that may be in the file."""
    try:
        content = path.read_bytes()
        x509.load_pem_x509_certificate(content)
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror})", "Check --ca.") from error
    except ValueError as error:
        raise UserError(
            f"{path} is no certificate", "--ca is the file certs/ca.crt of the server's folder."
        ) from error
    if b"PRIVATE KEY" in content:
        raise UserError(
            f"{path} holds a private key, which must not leave the server",
            "--ca is the file certs/ca.crt of the server's folder.",
        )
    return content
