"""Receipts in a folder, each holding the hash of the one before.

receipt-000001.json   signed; `previous` is the SHA-256 of the file before, empty in the first
receipt-000001.html   the page; its SHA-256 is in the JSON
head.json             signed: number and hash of the newest, so that a missing last one is noticed
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from foul.erasure.receipts.canonical import sha256
from foul.erasure.receipts.signed import DamagedError, read_signed

FOLDER = "receipts"
HEAD = "head.json"
RECEIPT_NAME = "foul erasure receipt"
HEAD_NAME = "foul erasure receipts, newest"


@dataclass(frozen=True)
class Link:
    """A receipt whose bytes are as they were signed."""

    file: Path
    sha256: str
    content: dict[str, Any]

    @property
    def number(self) -> int:
        return int(self.content["number"])

    @property
    def statement(self) -> dict[str, Any]:
        return dict(self.content["statement"])

    @property
    def page(self) -> Path:
        return self.file.with_suffix(".html")

    @property
    def next_key(self) -> str:
        """The key that signs what comes after."""
        return str(self.statement["new_key"] or self.content["key"])


@dataclass
class Chain:
    """What a folder holds, and what is wrong with it."""

    links: list[Link] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    head_behind: bool = False
    """The newest receipt was written, the head not yet: the writer was stopped in between."""
    keys: set[str] = field(default_factory=set)
    """Those that signed a receipt or the head. Each answers for the whole chain: what comes before
    its signature is in the hashes, what comes after was signed by it or by a key that it named."""


def receipt_file(folder: Path, number: int) -> Path:
    return folder / f"receipt-{number:06d}.json"


def read_link(file: Path) -> Link:
    """A receipt.

    Raises:
        DamagedError: it is not as it was signed.
        OSError: it cannot be read.
    """
    data = file.read_bytes()
    return Link(file, sha256(data), read_signed(RECEIPT_NAME, data))


def page_problem(link: Link) -> str | None:
    """What is wrong with a receipt's page."""
    try:
        same = sha256(link.page.read_bytes()) == link.content["page"]
    except OSError as error:
        return f"{link.page.name} cannot be read ({error.strerror})"
    return None if same else f"{link.page.name} is not the page that was signed: it was edited"


def read_chain(folder: Path) -> Chain:
    """Every receipt of a folder, every rule of the chain."""
    chain = Chain()
    for number, file in _files(folder):
        try:
            link = read_link(file)
        except (DamagedError, OSError) as error:
            chain.problems.append(f"{file.name}: {error}")
            continue
        if link.number != number:
            chain.problems.append(f"{file.name} is receipt {link.number}, not {number}")
            continue
        chain.links.append(link)
        chain.keys.add(link.content["key"])
        wrong = page_problem(link)
        if wrong:
            chain.problems.append(wrong)
    # A damaged file is reported once, not again as a missing one and a broken link.
    if not chain.problems:
        chain.problems += _broken(chain.links)
        _check_head(folder, chain)
    return chain


def _files(folder: Path) -> list[tuple[int, Path]]:
    named = ((re.fullmatch(r"receipt-(\d+)\.json", f.name), f) for f in folder.glob("*.json"))
    found = [(int(match[1]), file) for match, file in named if match]
    return sorted(found)


def _broken(links: Sequence[Link]) -> Iterator[str]:
    """Where a link does not follow from the one before."""
    there = {link.number for link in links}
    for number in range(1, max(there, default=0)):
        if number not in there:
            yield f"receipt {number} is missing"
    if links and links[0].number == 1 and links[0].content["previous"]:
        yield "receipt 1 is not the first of its chain"
    for before, link in pairwise(links):
        yield from _not_following(before, link)


def _not_following(before: Link, link: Link) -> Iterator[str]:
    if link.number != before.number + 1:
        return
    if link.content["previous"] != before.sha256:
        yield f"receipt {link.number} does not follow receipt {before.number} of this folder"
    if link.content["key"] != before.next_key:
        yield f"receipt {link.number} is signed by a key that receipt {before.number} did not name"
    if link.statement["federation"] != before.statement["federation"]:
        yield f"receipt {link.number} is of another federation than receipt {before.number}"


def _check_head(folder: Path, chain: Chain) -> None:
    """Whether the newest receipt is the one that was last written."""
    last = chain.links[-1] if chain.links else None
    try:
        head = read_signed(HEAD_NAME, (folder / HEAD).read_bytes())
    except FileNotFoundError:
        chain.head_behind = len(chain.links) == 1
        if len(chain.links) > 1:
            chain.problems.append(
                f"{HEAD} is missing: nobody can tell whether receipts after number"
                f" {len(chain.links)} were removed"
            )
        return
    except (DamagedError, OSError) as error:
        chain.problems.append(f"{HEAD}: {error}")
        return
    told = {link.number: link for link in chain.links}.get(head["number"])
    if told is None:
        chain.problems.append(
            f"{HEAD} tells of {head['number']} receipts, the last one here is number"
            f" {last.number if last else 0}: receipts were removed"
        )
    elif told.sha256 != head["sha256"] or head["key"] not in (told.content["key"], told.next_key):
        chain.problems.append(f"{HEAD} does not belong to the receipts of this folder")
    elif last and head["number"] < last.number - 1:
        chain.problems.append(f"{HEAD} is older than the receipts of this folder")
    else:
        chain.head_behind = told is not last
        chain.keys.add(head["key"])
