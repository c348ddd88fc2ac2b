"""Who is to be forgotten."""

from collections.abc import Sequence
from dataclasses import dataclass

from foul.errors import UserError
from foul.federation.messages import ClientInfo
from foul.names import find, hint


@dataclass(frozen=True)
class ForgetRequest:
    """The clients of a federation, told apart: those to forget and those to retain.

    `text` is the request as results are kept by it, however it was typed: `domain:` or `client:`
    and the names as the federation spells them, each once and sorted.
    """

    text: str
    forget: tuple[ClientInfo, ...]
    retain: tuple[ClientInfo, ...]

    @property
    def forget_ids(self) -> frozenset[str]:
        return frozenset(client.id for client in self.forget)

    @staticmethod
    def split(text: str) -> tuple[str, list[str]]:
        """`domain` or `client`, and the names.

        Raises:
            UserError: the text is no request, or names nobody.
        """
        kind, separator, names = text.partition(":")
        wanted = [name.strip() for name in names.split(",") if name.strip()]
        if kind not in ("domain", "client") or not separator:
            raise UserError(
                f"'{text}' does not say whom to forget",
                "Write domain:NAME or client:ID, for example domain:sketch.",
            )
        if not wanted:
            raise UserError(f"'{text}' forgets nobody", f"Name at least one {kind}.")
        return kind, wanted

    @classmethod
    def parse(cls, text: str, clients: Sequence[ClientInfo]) -> "ForgetRequest":
        """`domain:NAME`, `client:ID`, or several of them (`domain:A,B` or `client:x,y`).

        Raises:
            UserError: an unknown client or domain (with the nearest known one), everyone, or
                nobody.
        """
        kind, wanted = cls.split(text)
        known = sorted({getattr(client, _FIELD[kind]) for client in clients})
        chosen = set()
        for name in wanted:
            found = find(name, known)
            if found is None:
                raise UserError(f"There is no {kind} '{name}' in this run", hint(name, known))
            chosen.add(found)
        forget = tuple(c for c in clients if getattr(c, _FIELD[kind]) in chosen)
        retain = tuple(c for c in clients if getattr(c, _FIELD[kind]) not in chosen)
        if not retain:
            raise UserError(
                f"'{text}' forgets all {len(clients)} clients", "Retain at least one client."
            )
        return cls(f"{kind}:{','.join(sorted(chosen))}", forget, retain)


_FIELD = {"domain": "domain", "client": "id"}
