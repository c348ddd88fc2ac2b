"""A federation as the pages see it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from foul.erasure.receipts.chain import Chain
from foul.erasure.receipts.noted import noted_chain
from foul.erasure.store import Store
from foul.names import slug


@dataclass(frozen=True)
class Federation:
    """A run with an erasure ledger, under a name for addresses."""

    name: str
    run: Path

    def store(self) -> Store:
        """Its store, to look at.

        Raises:
            UserError: it has none, or the ledger cannot be used.
        """
        return Store.read(self.run)

    def receipts(self) -> Chain:
        """Its receipts, compared with what the ledger has noted of them."""
        store = self.store()
        return noted_chain(store.receipts, store.entries())


def federations(runs: Sequence[Path]) -> list[Federation]:
    """Runs with names that differ.

    Raises:
        UserError: one has no ledger, or its ledger cannot be used.
    """
    found: list[Federation] = []
    for run in runs:
        Store.read(run).state()
        name = slug(run.resolve().name)
        taken = {other.name for other in found}
        number = next(n for n in range(1, len(runs) + 1) if _numbered(name, n) not in taken)
        found.append(Federation(_numbered(name, number), run))
    return found


def _numbered(name: str, number: int) -> str:
    return name if number == 1 else f"{name}-{number}"
