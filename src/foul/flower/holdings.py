"""What one node holds: the data of its client."""

from dataclasses import dataclass, replace
from pathlib import Path

from foul.config.schema import Config, DataConfig
from foul.data import ClientData, build_clients, load_dataset
from foul.data.folder import EXTENSIONS
from foul.errors import UserError
from foul.federation.build import load_clients
from foul.federation.messages import Numbers
from foul.flower.parcel import PROTOCOL
from foul.names import hint
from foul.version import __version__


@dataclass(frozen=True)
class Holding:
    """A client's data, and the classes and image size it is in."""

    client: ClientData
    classes: tuple[str, ...]
    image_size: int

    def facts(self) -> Numbers:
        """What the server may know of it."""
        client = self.client
        splits = {"train": client.train, "validation": client.validation, "test": client.test}
        return {
            "protocol": PROTOCOL,
            "version": __version__,
            "client": client.id,
            "domain": client.domain,
            "samples": {name: len(samples) for name, samples in splits.items()},
            "classes": list(self.classes),
            "image_size": self.image_size,
        }


def share_of(config: Config, client: str) -> Holding:
    """The share of one client in a configuration: for trials, where all data is at hand.

    Raises:
        UserError: the configuration has no such client.
    """
    data, clients = load_clients(config)
    mine = {each.id: each for each in clients}
    if client not in mine:
        raise UserError(f"The configuration has no client '{client}'", hint(client, mine))
    return Holding(mine[client], data.classes, data.image_size)


def own_data(config: Config, client: str, folder: Path, domain: str, state: Path) -> Holding:
    """All images of a folder as the data of one client.

    Args:
        config: image size, test and validation shares, seed.
        client: its id, chosen by the operator.
        folder: ROOT/CLASS/* or ROOT/DOMAIN/CLASS/* with a single domain.
        domain: the domain's name for ROOT/CLASS/*; default: the folder's name.
        state: where this node keeps its files.

    Raises:
        UserError: the folder has several domains, or cannot be used.
    """
    root = folder.expanduser().absolute()
    if _is_one_domain(root):
        root = _with_domain(root, domain or root.name, state / "data")
    elif domain:
        raise UserError(
            f"--domain {domain} names the domain of ROOT/CLASS/*, but {folder} is laid out "
            "differently",
            "Leave it out: the domain's folder has a name.",
        )
    # A share of its own for nobody else: this client holds the whole domain.
    wanted = DataConfig.model_validate(
        config.data.model_dump() | {"name": "folder", "path": root, "domains": ()}
    )
    data = load_dataset(wanted, config.seed)
    if len(data.domains) != 1:
        raise UserError(
            f"{folder} has {len(data.domains)} domains ({', '.join(data.domain_names)}), a client "
            "has one",
            "Give the folder of one domain.",
        )
    alone = config.clients.model_copy(update={"per_domain": 1, "partition": "iid"})
    whole = build_clients(data, alone, config.seed)[0]
    return Holding(replace(whole, id=client), data.classes, data.image_size)


def _is_one_domain(root: Path) -> bool:
    """Whether images lie in ROOT/CLASS/*."""
    return root.is_dir() and any(
        file.suffix.lower() in EXTENSIONS
        for label in root.iterdir()
        if label.is_dir()
        for file in label.iterdir()
    )


def _with_domain(root: Path, domain: str, place: Path) -> Path:
    """A folder that shows ROOT as its only domain; always the same one, so that decoded images are
    found again."""
    place.mkdir(parents=True, exist_ok=True)
    for old in place.iterdir():
        old.unlink()
    (place / domain).symlink_to(root, target_is_directory=True)
    return place
