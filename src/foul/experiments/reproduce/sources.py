"""Which images: the user's folders and zips, recognised by their domains and classes."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from foul.data.folder import LAYOUT, Listing, scan
from foul.data.folder_set import require_known
from foul.data.known import KnownSet, known, known_sets
from foul.errors import UserError
from foul.names import canonical, find, hint, slug


@dataclass(frozen=True)
class Source:
    """A data set at hand.

    Attributes:
        name: of the catalogue, or `folder` for images that nobody knows.
        path: its folder or zip; None if it is embedded.
        domains: its domains, in the order in which they are told.
        made: whether the images were made for a smoke test.
    """

    name: str
    path: Path | None
    domains: tuple[str, ...]
    made: bool = False

    @property
    def title(self) -> str:
        """As people call it."""
        if self.name == "folder" and self.path is not None:
            return self.path.stem
        title = known(self.name).title
        return f"{title} (made images)" if self.made else title

    @property
    def key(self) -> str:
        """In names of files; unknown folders are told apart by theirs."""
        return slug(self.title) if self.name == "folder" else self.name

    def requests(self, asked: Sequence[str]) -> tuple[str, ...]:
        """Whom to forget: the last domain if nothing was asked, each in turn for `all`."""
        if not asked:
            return (f"domain:{self.domains[-1]}",)
        if "all" in asked:
            return tuple(f"domain:{name}" for name in self.domains)
        return tuple(asked)


def find_sources(texts: Sequence[str], names: Sequence[str], wanted: Sequence[str]) -> list[Source]:
    """The data sets that a user names.

    Args:
        texts: folders, zips, or names of embedded sets.
        names: what the folders are, in their order, where they should not be recognised; without
            folders, names of embedded sets.
        wanted: the paper's data sets, for the remedy.

    Raises:
        UserError: nothing is named, something is not there, or is not what it is said to be.
    """
    if not texts and not names:
        raise missing(wanted)
    if texts and names and len(names) != len(texts):
        raise UserError(
            f"There are {len(texts)} folders and {len(names)} names for them",
            "Give --data once for each folder, or not at all.",
        )
    if texts:
        pairs = zip(texts, names or [""] * len(texts), strict=True)
        found = [_source(text, name) for text, name in pairs]
    else:
        # Names, even if a folder is called so too.
        found = [_embedded_source(name) for name in names]
    titles = [source.title for source in found]
    twice = next((title for title in titles if titles.count(title) > 1), None)
    if twice is not None:
        raise UserError(
            f"Two of the data sets are called {twice}: their rows could not be told apart",
            "Rename a folder, or run the command once for each, with an --out of its own.",
        )
    return found


def missing(wanted: Sequence[str]) -> UserError:
    """What to say when there are no images: where to get them, and how to lay them out."""
    places = "; ".join(f"{known(name).title}: {known(name).source}" for name in wanted)
    return UserError(
        f"No data was named ({places})",
        f"Name its folder or zip. {LAYOUT}. `foul data list` shows domains and classes; any folder "
        "of this layout will do, without the paper's figures beside it; --data digits needs none; "
        "--size smoke makes its own images.",
    )


def _source(text: str, name: str) -> Source:
    path = Path(text).expanduser()
    if not path.exists():
        if not name:
            return _embedded_source(text)
        raise _nothing_at(text)
    listing = scan(path)
    if not name:
        entry = _recognised(listing)
        return Source(entry.name if entry else "folder", path, _ordered(listing, entry))
    entry = known(name)
    require_known(listing, entry, tuple(entry.domains))
    return Source(entry.name, path, _ordered(listing, entry))


def _embedded_source(name: str) -> Source:
    """The embedded set of this name."""
    by_name = {entry.name: entry for entry in known_sets() if entry.embedded}
    found = find(name, by_name)
    if found is None:
        raise _nothing_at(name)
    return Source(found, None, tuple(by_name[found].domains))


def _nothing_at(text: str) -> UserError:
    embedded = [entry.name for entry in known_sets() if entry.embedded]
    return UserError(f"There is nothing at {Path(text).expanduser()}", hint(text, embedded))


def _recognised(listing: Listing) -> KnownSet | None:
    """The known set with these very domains and classes."""
    for entry in known_sets():
        if _same(entry.domains, listing.domains) and _same(entry.classes, listing.classes):
            return entry
    return None


def _same(one: Collection[str], other: Collection[str]) -> bool:
    return {canonical(name) for name in one} == {canonical(name) for name in other}


def _ordered(listing: Listing, entry: KnownSet | None) -> tuple[str, ...]:
    """The domains as the folder spells them, in the order of the catalogue."""
    if entry is None:
        return listing.domains
    return tuple(str(find(name, listing.domains)) for name in entry.domains)
