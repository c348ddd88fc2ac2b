"""Everything that can be checked of a store without asking a client."""

from dataclasses import asdict, dataclass
from typing import Any

from foul.erasure.inventory import Item
from foul.erasure.purge import search_store
from foul.erasure.receipts.noted import noted_chain
from foul.erasure.store import Store
from foul.federation.observer import Observer


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    what: str
    ok: bool
    told: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def audit(store: Store, observer: Observer | None = None) -> list[Finding]:
    """Check the ledger's chain, the model in service, the tombstones, the receipts, and that no
    erased client is named where it must not be.

    Raises:
        UserError: the ledger itself is damaged.
    """
    observer, state = observer or Observer(), store.state()
    count = len(store.entries())
    found = [Finding("ledger", True, f"{count} entries, each holding the hash of the one before")]
    service = store.service_hash()
    same = service == state.current.hash
    told = f"version {state.current.number}, {service[:16]}..."
    found.append(
        Finding("model in service", same, told if same else f"{told} is not in the ledger")
    )
    agree = store.folder.erased() == state.erased.keys()
    gone = ", ".join(sorted(state.erased)) or "nobody"
    told = f"erased: {gone}" if agree else "erased.json differs from the ledger"
    found.append(Finding("tombstones", agree, told))
    found += _receipts(store)
    purged = [Item(**item) for job in state.jobs.values() for item in job.purge.get("items", [])]
    kept = [item for item in purged if item.how == "keep"]
    left, counts = search_store(store, state, [], kept, observer)
    told = "; ".join(f"{trace.what} in {trace.file}" for trace in left[:3])
    clean = f"no erased client is named in {counts['files']} files"
    found.append(Finding("leftovers", not left, told or clean))
    if state.unfinished:
        job = state.unfinished
        told = f"job {job.number} was interrupted ({job.phase}): foul erase run goes on with it"
        found.append(Finding("jobs", False, told))
    return found


def _receipts(store: Store) -> list[Finding]:
    """Every receipt that the ledger knows, and whether it is the one that was given."""
    chain = noted_chain(store.receipts, store.entries())
    if not chain.links and not chain.problems:
        return []
    told = "; ".join(chain.problems[:3]) or f"{len(chain.links)} receipts, signed and chained"
    return [Finding("receipts", not chain.problems, told)]
