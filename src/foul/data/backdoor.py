"""A backdoor: some clients train on images with a trigger that stands for one class."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from foul.config.schema import BackdoorConfig
from foul.data.clients import ClientData
from foul.data.domains import Samples
from foul.errors import UserError
from foul.names import find, hint
from foul.seeds import numpy_generator

REFERENCE = 28
"""The image size at which the trigger's side is given."""


def stamp(images: Tensor, size: int) -> Tensor:
    """Copies of uint8 images ``[N, H, W, 3]`` with a checkerboard in the lower right corner.

    Its fields are single pixels, white in its upper left corner, then black and white in turn;
    its side is ``max(2, round(size * H / 28))``.
    """
    side = max(2, round(size * images.shape[1] / REFERENCE))
    place = torch.arange(side)
    white = (place[:, None] + place[None, :]) % 2 == 0
    stamped = images.clone()
    stamped[:, -side:, -side:] = (255 * white).to(images)[:, :, None]
    return stamped


def poison(client: ClientData, config: BackdoorConfig, seed: int) -> ClientData:
    """The client with the trigger and the target label on a random share of its training samples.

    Its validation and test samples stay clean. Its training images become a copy of its own: the
    array it shares with other clients is left as it is.
    """
    images = client.train.images[client.train.index]
    labels = client.train.targets
    rng = numpy_generator(seed, "backdoor", client=client.id)
    count = round(config.share * len(labels))
    rows = torch.from_numpy(rng.permutation(len(labels))[:count])
    images[rows] = stamp(images[rows], config.size)
    labels[rows] = config.target
    return replace(client, train=Samples.of(images, labels))


def poison_chosen(
    clients: Sequence[ClientData], config: BackdoorConfig, classes: int, seed: int
) -> tuple[ClientData, ...]:
    """All clients, those that the configuration names with a trigger.

    Raises:
        UserError: an unknown client or domain, or a target that is no class.
    """
    chosen = {_known(name, clients) for name in config.clients}
    if chosen and config.target >= classes:
        raise UserError(
            f"backdoor.target={config.target} is no class of this data set",
            f"Choose one from 0 to {classes - 1}.",
        )
    return tuple(
        poison(client, config, seed) if {client.id, client.domain} & chosen else client
        for client in clients
    )


def _known(name: str, clients: Sequence[ClientData]) -> str:
    """The id or domain that the user means."""
    known = [*dict.fromkeys(c.domain for c in clients), *(c.id for c in clients)]
    found = find(name, known)
    if found is None:
        raise UserError(f"backdoor.clients names no client or domain: '{name}'", hint(name, known))
    return found
