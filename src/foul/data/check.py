"""Comparing a folder or zip of images with what the data set should contain."""

from collections import Counter, defaultdict
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path

from foul.data.cache import Progress
from foul.data.decode import CorruptImage, decode, open_reader
from foul.data.folder import Listing, scan
from foul.data.known import KnownSet, known
from foul.errors import UserError
from foul.names import canonical, find, hint


@dataclass(frozen=True)
class Report:
    """What a data set holds and what is wrong with it.

    Attributes:
        path: the folder or zip.
        name: the known data set it was compared with, if any.
        counts: images of each class of each domain.
        unreadable: images that cannot be decoded, with the reason.
        problems: what keeps the set from being used as it is.
        warnings: what is odd but does no harm by itself.
    """

    path: str
    name: str | None
    counts: dict[str, dict[str, int]]
    unreadable: dict[str, str]
    problems: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """True if it can be used as it is."""
        return not self.problems

    @property
    def images(self) -> int:
        """Images of all domains, unreadable ones included."""
        return sum(sum(classes.values()) for classes in self.counts.values())

    def to_dict(self) -> dict[str, object]:
        """Everything, as JSON takes it."""
        return {"ok": self.ok, "images": self.images, **asdict(self)}


def check(path: Path, name: str | None = None, progress: Progress | None = None) -> Report:
    """Look at every image of a folder or zip.

    Args:
        path: the folder or zip.
        name: a known data set to compare it with; None or 'folder' for one's own.
        progress: called with (done, total) while images are decoded.

    Raises:
        UserError: the path is missing or has no images in this layout, or the name is unknown.
    """
    entry = None if name is None or canonical(name) == "folder" else known(name)
    if entry is not None and entry.embedded:
        raise UserError(f"The data set '{entry.name}' is embedded", "There is nothing to check")
    listing = scan(path.expanduser())
    numbers = Counter((image.domain, image.label) for image in listing.images)
    counts = {
        domain: {label: numbers[domain, label] for label in listing.classes}
        for domain in listing.domains
    }
    unreadable, twins = _inspect(listing, progress)
    problems = _gaps(counts)
    warnings = [f"{path} is ignored: not in a class folder" for path in listing.misplaced]
    if twins:
        warnings.append(
            f"{len(twins)} images occur in more than one domain, for example {' = '.join(twins[0])}"
        )
    if entry is not None:
        problems += _missing(counts, entry)
        warnings += _surprises(counts, entry)
    if unreadable:
        first = next(iter(unreadable))
        problems.append(f"{len(unreadable)} images cannot be decoded, the first is {first}")
    return Report(
        path=str(path),
        name=entry.name if entry else None,
        counts=counts,
        unreadable=unreadable,
        problems=tuple(problems),
        warnings=tuple(warnings),
    )


def _inspect(
    listing: Listing, progress: Progress | None
) -> tuple[dict[str, str], list[tuple[str, ...]]]:
    """Undecodable images with reasons, and groups of equal files in different domains."""
    unreadable: dict[str, str] = {}
    same: dict[bytes, dict[str, str]] = defaultdict(dict)
    with open_reader(listing.root) as read:
        for done, image in enumerate(listing.images, start=1):
            try:
                data = read(image.path)
                same[blake2b(data, digest_size=16).digest()].setdefault(image.domain, image.path)
                decode(data, size=None)
            except CorruptImage as error:
                unreadable[image.path] = str(error)
            if progress:
                progress(done, len(listing.images))
    return unreadable, [tuple(paths.values()) for paths in same.values() if len(paths) > 1]


def _gaps(counts: dict[str, dict[str, int]]) -> list[str]:
    return [
        f"Domain '{domain}' has no images of class '{label}'"
        for domain, classes in counts.items()
        for label, count in classes.items()
        if not count
    ]


def _missing(counts: dict[str, dict[str, int]], entry: KnownSet) -> list[str]:
    """Domains and classes that the data set must have or cannot have."""
    classes = next(iter(counts.values()))
    return [
        *(
            f"Domain '{domain}' is missing. {hint(domain, counts)}"
            for domain in entry.domains
            if find(domain, counts) is None
        ),
        *(f"Class '{label}' is missing" for label in entry.classes if find(label, classes) is None),
        *(
            f"{entry.title} has no class '{label}'"
            for label in classes
            if find(label, entry.classes) is None
        ),
    ]


def _surprises(counts: dict[str, dict[str, int]], entry: KnownSet) -> list[str]:
    """Other numbers than published: copies differ, and training works with them."""
    found = []
    for domain, classes in counts.items():
        name = find(domain, entry.domains)
        total = sum(classes.values())
        if name is None:
            found.append(f"{entry.title} has no domain '{domain}'")
        elif total != entry.domains[name]:
            found.append(f"Domain '{domain}' has {total} images, not {entry.domains[name]}")
    return found
