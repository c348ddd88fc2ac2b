"""Listing the images of a ROOT/DOMAIN/CLASS/* folder, or of a zip with that layout."""

import os
import zipfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from foul.errors import MachineError, UserError

EXTENSIONS = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".ppm", ".tif", ".tiff"})
LAYOUT = "Images belong in ROOT/DOMAIN/CLASS/, for example ROOT/sketch/dog/1.jpg"


@dataclass(frozen=True)
class Image:
    """One image: where it is below the root, and what identifies its content."""

    path: str
    domain: str
    label: str
    stamp: str


@dataclass(frozen=True)
class Listing:
    """All images of a folder or zip, sorted by domain, class and file name.

    Attributes:
        root: the folder or zip.
        domains: domain names, sorted.
        classes: class names of all these domains, sorted; they may have no images.
        images: all images, sorted by path.
        misplaced: images that are not in a class folder of a domain folder.
        directories: (domain, class) pairs for which a folder exists, empty or not.
    """

    root: Path
    domains: tuple[str, ...]
    classes: tuple[str, ...]
    images: tuple[Image, ...]
    misplaced: tuple[str, ...]
    directories: frozenset[tuple[str, str]]

    def of(self, domain: str) -> tuple[Image, ...]:
        """The images of one domain."""
        return tuple(image for image in self.images if image.domain == domain)

    def only(self, domains: Collection[str]) -> "Listing":
        """The listing restricted to these domains, in the given order, and to their classes."""
        pairs = frozenset(pair for pair in self.directories if pair[0] in domains)
        return replace(
            self,
            domains=tuple(domains),
            classes=tuple(sorted({label for _, label in pairs})),
            images=tuple(image for image in self.images if image.domain in domains),
            directories=pairs,
        )


def scan(root: Path) -> Listing:
    """List a folder or zip without opening an image.

    One directory around everything (as most zips have) is looked through.

    Raises:
        UserError: the path is missing, no zip, empty, or laid out differently.
        MachineError: it cannot be read.
    """
    if not root.exists():
        raise UserError(f"There is nothing at {root}", "Set data.path to the folder or zip")
    try:
        found = dict(_folder_entries(root) if root.is_dir() else _zip_entries(root))
    except OSError as error:
        raise MachineError(
            f"Cannot read {root}: {error.strerror}", "Check its permissions"
        ) from error
    shown = {path: stamp for path, stamp in found.items() if not _hidden(path)}
    files = {p: s for p, s in shown.items() if s and p.suffix.lower() in EXTENSIONS}
    if not files:
        raise UserError(f"{root} contains no images", LAYOUT)
    outer = _wrapper(files)
    placed = {p: s for p, s in files.items() if len(p.parts) == outer + 3}
    if not placed:
        raise UserError(_misfit(root, files), LAYOUT)
    folders = {p.parent for p in placed}
    folders |= {p for p, s in shown.items() if not s and len(p.parts) == outer + 2}
    classes = {p.parts[outer + 1] for p in placed}
    # A folder without any class folder is no domain, but one of notes or scripts.
    domains = {p.parts[outer] for p in folders if p.parts[outer + 1] in classes}
    pairs = frozenset(
        (p.parts[outer], p.parts[outer + 1]) for p in folders if p.parts[outer] in domains
    )
    return Listing(
        root=root,
        domains=tuple(sorted(domains)),
        classes=tuple(sorted({label for _, label in pairs})),
        images=tuple(
            Image(str(p), p.parts[outer], p.parts[outer + 1], placed[p])
            for p in sorted(placed, key=lambda p: p.parts)
        ),
        misplaced=tuple(sorted(str(p) for p in files.keys() - placed.keys())),
        directories=pairs,
    )


def require_every_class(listing: Listing) -> None:
    """Check that each domain has images of each class.

    Raises:
        UserError: naming the first domain and class without images, and how many there are.
    """
    present = {(image.domain, image.label) for image in listing.images}
    wanted = [(domain, label) for domain in listing.domains for label in listing.classes]
    absent = [pair for pair in wanted if pair not in present]
    if absent:
        domain, label = absent[0]
        more = f" (and {len(absent) - 1} more such gaps)" if len(absent) > 1 else ""
        raise UserError(
            f"Domain '{domain}' of {listing.root} has no images of class '{label}'{more}",
            "Add images, delete the class folder in all domains, or choose other data.domains",
        )


def _folder_entries(root: Path) -> Iterator[tuple[PurePosixPath, str]]:
    """Relative paths with a stamp: size and time for files, empty for directories."""

    def stop(error: OSError) -> None:
        raise error

    for parent, directories, names in os.walk(root, followlinks=True, onerror=stop):
        inside = PurePosixPath(Path(parent).relative_to(root).as_posix())
        directories[:] = sorted(d for d in directories if not _hidden(PurePosixPath(d)))
        yield from ((inside / directory, "") for directory in directories)
        for name in names:
            if Path(name).suffix.lower() in EXTENSIONS:
                status = Path(parent, name).stat()
                yield inside / name, f"{status.st_size}:{status.st_mtime_ns}"


def _zip_entries(root: Path) -> Iterator[tuple[PurePosixPath, str]]:
    """Paths in a zip with a stamp: size and checksum, and the time of the zip."""
    time = root.stat().st_mtime_ns
    try:
        with zipfile.ZipFile(root) as archive:
            for info in archive.infolist():
                stamp = "" if info.is_dir() else f"{info.file_size}:{info.CRC:08x}:{time}"
                yield PurePosixPath(info.filename), stamp
    except zipfile.BadZipFile as error:
        raise UserError(f"{root} is neither a folder nor a zip", LAYOUT) from error


def _hidden(path: PurePosixPath) -> bool:
    return any(part.startswith(".") or part == "__MACOSX" for part in path.parts)


def _wrapper(files: Collection[PurePosixPath]) -> int:
    """1 if a single directory surrounds all domains, else 0."""
    depths = {len(path.parts) for path in files}
    single = len({path.parts[0] for path in files}) == 1
    return 1 if single and 4 in depths and 3 not in depths else 0


def _misfit(root: Path, files: Collection[PurePosixPath]) -> str:
    """What is wrong with a root whose images are not where they should be."""
    example = min(files, key=lambda path: path.parts)
    if len(example.parts) == 2:
        return f"{root} looks like ROOT/CLASS/*: {example} has no domain folder above its class"
    if len(example.parts) == 1:
        return f"{root} has images but no domain folders, for example {example}"
    return f"{root} has images too deep below it, for example {example}"
