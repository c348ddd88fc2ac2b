"""Receipts beside the ledger that has noted each of them."""

from collections.abc import Iterable
from pathlib import Path

from foul.erasure.ledger import Entry
from foul.erasure.receipts.chain import Chain, read_chain


def noted_chain(folder: Path, entries: Iterable[Entry]) -> Chain:
    """The receipts of a folder; one that is not the one that was noted is a problem.

    A folder that was put back to an earlier day, head and all, is whole in itself: this tells.
    """
    chain = read_chain(folder)
    there = {link.number: link.sha256 for link in chain.links}
    noted = [entry.body for entry in entries if entry.kind == "issued"]
    if not chain.problems:
        chain.problems += [
            f"receipt {body['receipt']} is not the one that the ledger has noted"
            for body in noted
            if there.get(body["receipt"]) != body["sha256"]
        ]
    return chain
