"""A data set from a folder or zip of images: list, decode or take from the cache, split."""

from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np
import torch

from foul.config.schema import DataConfig
from foul.data.cache import Decoded, Progress, cache_root, cached
from foul.data.domains import Domain, DomainSet, Samples
from foul.data.folder import Listing, require_every_class, scan
from foul.data.known import KnownSet
from foul.data.split import official_test_rows, stratified_sample
from foul.errors import UserError
from foul.names import find, hint
from foul.seeds import numpy_generator


def folder_set(
    config: DataConfig, known: KnownSet | None, seed: int, progress: Progress | None = None
) -> DomainSet:
    """Load the images at ``config.path``.

    Args:
        config: path, image size, domains, what to do about corrupt images.
        known: what the folder should contain, if it is a known data set.
        seed: for the split into training and test part.
        progress: called with (done, total) while images are decoded.

    Raises:
        UserError: the folder is missing, incomplete or has corrupt images.
        MachineError: the cache cannot be written.
    """
    name = known.name if known else "folder"
    if config.path is None:
        where = f" (get it from {known.source})" if known else ""
        raise UserError(
            f"The data set '{name}' needs a folder or zip{where}",
            "Set data.path to it; `foul data check PATH` tells whether it is complete",
        )
    listing = scan(config.path.expanduser())
    if config.domains:
        listing = listing.only(chosen_domains(config.domains, listing.domains))
    if known:
        require_known(listing, known, config.domains or tuple(known.domains))
    require_every_class(listing)
    decoded = _decode_all(listing, config, progress)
    if not config.allow_corrupt:
        _require_no_corrupt(listing, decoded)
    domains = tuple(
        _domain(listing, domain, decoded[domain], config.test_fraction, seed)
        for domain in listing.domains
    )
    return DomainSet(name, listing.classes, config.image_size, domains)


def chosen_domains(wanted: tuple[str, ...], present: tuple[str, ...]) -> tuple[str, ...]:
    """The domains a user asks for, as the data set spells them.

    Raises:
        UserError: one is unknown (with the nearest as a hint) or named twice.
    """
    chosen = []
    for name in wanted:
        found = find(name, present)
        if found is None:
            raise UserError(f"There is no domain '{name}' in the data", hint(name, present))
        if found in chosen:
            raise UserError(f"data.domains names '{found}' twice", "Name it once")
        chosen.append(found)
    return tuple(chosen)


def require_known(listing: Listing, known: KnownSet, domains: Collection[str]) -> None:
    """Check that a folder has these domains and exactly the classes of the known set.

    Raises:
        UserError: a domain or class is missing, or a class is not of this data set.
    """
    for domain in domains:
        if find(domain, listing.domains) is None:
            raise UserError(
                f"{known.title} has a domain '{domain}', but {listing.root} has only"
                f" {', '.join(listing.domains)}",
                f"{hint(domain, listing.domains)} Rename the folder, or use data.name=folder",
            )
    strange = [label for label in listing.classes if find(label, known.classes) is None]
    if strange:
        raise UserError(
            f"{listing.root} has a class '{strange[0]}' that {known.title} does not have",
            "Remove its folders, or use data.name=folder",
        )
    missing = [label for label in known.classes if find(label, listing.classes) is None]
    if missing:
        raise UserError(
            f"{known.title} has a class '{missing[0]}', but {listing.root} has no such folder",
            "Complete the folder, or use data.name=folder",
        )


def _decode_all(
    listing: Listing, config: DataConfig, progress: Progress | None
) -> dict[str, Decoded]:
    total, done = len(listing.images), 0
    result = {}
    for domain in listing.domains:
        images = listing.of(domain)
        result[domain] = cached(
            cache_root(config.cache),
            listing.root,
            images,
            config.image_size,
            config.allow_corrupt,
            _shifted(progress, done, total),
        )
        done += len(images)
    return result


def _shifted(progress: Progress | None, start: int, total: int) -> Progress | None:
    """Progress of one domain as part of the whole."""
    return progress and (lambda done, _: progress(start + done, total))


def _require_no_corrupt(listing: Listing, decoded: Mapping[str, Decoded]) -> None:
    paths = [
        listing.of(domain)[row].path
        for domain in listing.domains
        for row in decoded[domain].corrupt
    ]
    if paths:
        more = f" (and {len(paths) - 1} more)" if len(paths) > 1 else ""
        raise UserError(
            f"{Path(listing.root, paths[0])}{more} cannot be decoded: "
            f"{len(paths)} of {len(listing.images)} images are corrupt",
            "Replace or delete them (`foul data check PATH` lists all), or skip them with"
            " data.allow_corrupt=true",
        )


def _domain(
    listing: Listing, name: str, decoded: Decoded, test_fraction: float, seed: int
) -> Domain:
    images = listing.of(name)
    labels = np.array([listing.classes.index(image.label) for image in images], np.int64)
    good = np.setdiff1d(np.arange(len(images)), np.array(decoded.corrupt, np.int64))
    samples = Samples(decoded.images, torch.from_numpy(labels), torch.from_numpy(good))
    if len(samples) < 2:
        raise UserError(
            f"Domain '{name}' of {listing.root} has {len(samples)} usable images",
            "It needs one to train on and one to test with: add images",
        )
    test = official_test_rows([images[row].path for row in good])
    if test is None:
        count = min(max(round(len(good) * test_fraction), 1), len(good) - 1)
        rng = numpy_generator(seed, "data/split", client=name)
        test = stratified_sample(labels[good], count, rng)
    train = np.setdiff1d(np.arange(len(good)), test)
    return Domain(
        name, samples.subset(torch.from_numpy(train)), samples.subset(torch.from_numpy(test))
    )
