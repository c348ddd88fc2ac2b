"""Issue a receipt: state, render, sign, chain. Stopped at any moment, the next one goes on."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from foul.erasure.clock import now
from foul.erasure.receipts.canonical import sha256
from foul.erasure.receipts.chain import (
    FOLDER,
    HEAD,
    HEAD_NAME,
    RECEIPT_NAME,
    Link,
    read_chain,
    read_link,
    receipt_file,
)
from foul.erasure.receipts.claims import not_claimed
from foul.erasure.receipts.keys import (
    CURRENT,
    NEXT,
    fingerprint,
    load_private,
    make_key,
    public_hex,
    signing_key,
)
from foul.erasure.receipts.keys import FOLDER as KEYS
from foul.erasure.receipts.page import render_page
from foul.erasure.receipts.signed import sign
from foul.erasure.receipts.statement import Statement
from foul.errors import UserError
from foul.runs.atomic import not_written, remove_leftovers, replacing
from foul.version import __version__


@dataclass(frozen=True)
class Receipt:
    """An issued receipt: its number, its files, the hash of the JSON."""

    number: int
    json: Path
    html: Path
    sha256: str


def issue_receipt(store: Path, statement: Statement) -> Receipt:
    """Write the receipt of an event, or give the one it has.

    Args:
        store: the federation's store; receipts go to its folder `receipts`.
        statement: what happened.

    Raises:
        UserError: the receipts or the key are not as they were left; nothing is written.
        MachineError: the disk is full; nothing is left of the new receipt.
    """
    with _locked(store) as links:
        return _issue(store, links, statement)


def require_signing(store: Path) -> None:
    """Check that receipts can be issued, before anything is done that needs one.

    Raises:
        UserError: as `issue_receipt`.
    """
    with _locked(store) as links:
        _own_key(store, links)


def find_receipt(store: Path, event: str) -> Receipt | None:
    """The receipt of an event, if it was issued."""
    link = _of_event(read_chain(store / FOLDER).links, event)
    return _receipt(link) if link else None


def rotate_key(store: Path) -> Receipt:
    """Make a new key pair. The old key signs a receipt that names the new one, and is destroyed.

    Raises:
        UserError: as `issue_receipt`, or nothing was signed yet.
        MachineError: as `issue_receipt`.
    """
    with _locked(store) as links:
        if not links:
            raise UserError(f"{store} has signed nothing yet", "There is no key to replace.")
        path = store / KEYS / NEXT
        new = public_hex(load_private(path) if path.exists() else make_key(path))
        statement = Statement(
            kind="rotation",
            event=f"rotation:{fingerprint(new)}",
            federation=links[-1].statement["federation"],
            happened=now(),
            outcome="From now on receipts are signed with another key.",
            new_key=new,
        )
        receipt = _issue(store, links, statement)
        _settle_rotation(store, read_link(receipt.json))
        return receipt


@contextmanager
def _locked(store: Path) -> Iterator[list[Link]]:
    """The receipts so far, held for this process; what a kill left undone is done first."""
    folder = store / FOLDER
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = (folder / ".lock").open("w")
    except OSError as error:
        raise not_written(folder, error) from error
    with handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        remove_leftovers(folder)
        chain = read_chain(folder)
        if chain.problems:
            raise UserError(
                f"The receipts in {folder} are not as they were written: {chain.problems[0]}",
                "Put them back from a backup; `foul erase check` tells what is wrong.",
            )
        if chain.head_behind:
            _write_head(store, chain.links[-1])
        if chain.links:
            _settle_rotation(store, chain.links[-1])
        yield chain.links


def _own_key(store: Path, links: list[Link]) -> Ed25519PrivateKey:
    """The key that signs next.

    Raises:
        UserError: it is not the one that the receipts so far name.
    """
    key = signing_key(store)
    if links and links[-1].next_key != public_hex(key):
        raise UserError(
            f"{store / KEYS / CURRENT} is not the key that signed the receipts before",
            "Put the right key back from a backup.",
        )
    return key


def _issue(store: Path, links: list[Link], statement: Statement) -> Receipt:
    known = _of_event(links, statement.event)
    if known:
        return _receipt(known)
    key = _own_key(store, links)
    file = receipt_file(store / FOLDER, len(links) + 1)
    content = {
        "number": len(links) + 1,
        "previous": links[-1].sha256 if links else "",
        "issued": now(),
        "written_by": f"foul {__version__}",
        "statement": statement.to_dict(),
        "not_claimed": not_claimed(statement),
    }
    page = render_page(content, public_hex(key)).encode()
    data = sign(RECEIPT_NAME, content | {"page": sha256(page)}, key)
    # The page first: a JSON without its page would be a receipt that fails its check.
    _write(file.with_suffix(".html"), page)
    _write(file, data)
    link = read_link(file)
    _write_head(store, link)
    return _receipt(link)


def _write_head(store: Path, last: Link) -> None:
    """Say which receipt is the newest, with the key that signed it."""
    told = {"number": last.number, "sha256": last.sha256}
    _write(store / FOLDER / HEAD, sign(HEAD_NAME, told, signing_key(store)))


def _settle_rotation(store: Path, last: Link) -> None:
    """Put the key in place that the last receipt names, if that was not done yet. By signing the
    head it answers for all that is there."""
    path = store / KEYS / NEXT
    if path.exists() and public_hex(load_private(path)) == last.statement["new_key"]:
        os.replace(path, store / KEYS / CURRENT)
        _write_head(store, last)


def _write(path: Path, data: bytes) -> None:
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def _of_event(links: list[Link], event: str) -> Link | None:
    return next((link for link in links if link.statement["event"] == event), None)


def _receipt(link: Link) -> Receipt:
    return Receipt(link.number, link.file, link.page, link.sha256)
