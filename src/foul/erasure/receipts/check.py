"""Check a receipt without the store that issued it: its bytes, its page, its key, its chain."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foul.erasure.receipts.chain import Chain, Link, page_problem, read_chain, read_link
from foul.erasure.receipts.keys import fingerprint, read_public, spaced
from foul.erasure.receipts.signed import DamagedError
from foul.errors import UserError


@dataclass(frozen=True)
class Finding:
    """One thing that was checked."""

    what: str
    ok: bool
    text: str


@dataclass(frozen=True)
class Verdict:
    """The outcome of a check.

    Attributes:
        path: what was checked.
        findings: what was looked at, in order.
        key: the public key that signed it, in hexadecimal digits; empty if that cannot be told.
        anchored: whether a key was given to compare with: without one, a receipt is only
            consistent in itself.
        statement: what the receipt states; empty for a whole folder or a damaged receipt.
    """

    path: Path
    findings: tuple[Finding, ...]
    key: str
    anchored: bool
    statement: dict[str, Any]

    @property
    def ok(self) -> bool:
        return all(finding.ok for finding in self.findings)

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.key) if self.key else ""

    def to_dict(self) -> dict[str, Any]:
        return {
            "receipt": str(self.path),
            "ok": self.ok,
            "key_given": self.anchored,
            "fingerprint": self.fingerprint,
            "findings": [{"what": f.what, "ok": f.ok, "text": f.text} for f in self.findings],
            "statement": self.statement,
        }


def check_receipt(path: Path, key: Path | None = None, chain: Path | None = None) -> Verdict:
    """Check a receipt, or every receipt of a folder.

    Args:
        path: its JSON or its page, which lie side by side; or a folder of receipts.
        key: the issuer's public key, as it reached you another way.
        chain: a folder with all receipts of the federation.

    Raises:
        UserError: there is nothing to check at this path, or the key cannot be read.
    """
    wanted = read_public(key) if key else ""
    if path.is_dir():
        return _check_folder(path, wanted)
    file = path.with_suffix(".json") if path.suffix == ".html" else path
    if not file.is_file():
        raise UserError(
            f"There is no receipt {file}", "A receipt is a .json file with its page beside it."
        )
    known = read_chain(_folder(chain)) if chain else None
    try:
        link = read_link(file)
    except (DamagedError, OSError) as error:
        damaged = Finding("signature", False, f"{file.name}: {error}")
        return Verdict(file, (damaged,), "", bool(wanted), {})
    whole = Finding("signature", True, "the facts are as they were signed")
    findings = (whole, _page(link), *_key(link, wanted, known), *_place(link, known))
    return Verdict(file, findings, link.content["key"], bool(wanted), link.statement)


def _folder(path: Path) -> Path:
    if not path.is_dir():
        raise UserError(f"{path} is not a folder", "Give the folder with the receipts.")
    return path


def _check_folder(path: Path, wanted: str) -> Verdict:
    chain = read_chain(path)
    if not chain.links and not chain.problems:
        raise UserError(f"There are no receipts in {path}", "They are named receipt-NUMBER.json.")
    key = chain.links[-1].content["key"] if chain.links else ""
    findings = list(_chain_findings(chain))
    if wanted:
        findings.append(_key_finding(wanted in chain.keys, wanted, key))
    return Verdict(path, tuple(findings), key, bool(wanted), {})


def _page(link: Link) -> Finding:
    wrong = page_problem(link)
    return Finding("page", not wrong, wrong or "the page is the one that was signed")


def _key(link: Link, wanted: str, chain: Chain | None) -> Iterator[Finding]:
    """Whether the given key answers for the receipt: it signed it, or the chain that it is in."""
    if not wanted:
        return
    signed = link.content["key"] == wanted
    if not signed and chain and _answers(wanted, chain, link):
        yield Finding("key", True, "the given key answers for the chain that it is in")
    else:
        yield _key_finding(signed, wanted, link.content["key"])


def _answers(key: str, chain: Chain, link: Link) -> bool:
    there = any(other.sha256 == link.sha256 for other in chain.links)
    return there and key in chain.keys and not chain.problems


def _key_finding(signed: bool, wanted: str, found: str) -> Finding:
    if signed:
        return Finding("key", True, "signed with the given key")
    told = spaced(fingerprint(found)) if found else "unknown"
    return Finding(
        "key",
        False,
        f"wrong key: it was signed with the key {told}, the given one is"
        f" {spaced(fingerprint(wanted))}",
    )


def _place(link: Link, chain: Chain | None) -> Iterator[Finding]:
    if chain is None:
        return
    yield from _chain_findings(chain)
    same = any(other.sha256 == link.sha256 for other in chain.links)
    place = f"it is number {link.number} of {len(chain.links)}"
    yield Finding("place", same, place if same else "this receipt is not one of the chain")


def _chain_findings(chain: Chain) -> Iterator[Finding]:
    if chain.problems:
        yield from (Finding("chain", False, problem) for problem in chain.problems)
        return
    behind = " (the newest one was written, but not yet noted as such)" if chain.head_behind else ""
    count = len(chain.links)
    receipts = "1 receipt, complete" if count == 1 else f"{count} receipts, complete and in order"
    yield Finding("chain", True, f"{receipts}{behind}")
