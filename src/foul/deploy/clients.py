"""Which clients of a configuration get a node."""

from collections.abc import Sequence

from foul.config.schema import Config
from foul.data import build_clients, load_dataset
from foul.deploy.prepare import require_client_id
from foul.errors import UserError
from foul.names import hint


def choose_clients(config: Config, count: int | None, named: Sequence[str]) -> list[str]:
    """The named ones; else the first `count` in turns over the domains, so that few clients still
    come from many; else all.

    Raises:
        UserError: there are fewer, or a name is not one of them.
    """
    if count == 0 and not named:
        return []
    data = load_dataset(config.data, config.data_seed)
    clients = build_clients(data, config.clients, config.seed)
    known = [client.id for client in clients]
    for name in named:
        require_client_id(name)
        if name not in known:
            raise UserError(f"The configuration has no client '{name}'", hint(name, known))
    if named:
        return list(dict.fromkeys(named))
    if count is not None and count > len(known):
        raise UserError(
            f"--clients {count}: the configuration has {len(known)} clients",
            "Ask for fewer, or raise clients.per_domain.",
        )
    seen: dict[str, int] = {}
    turns = []
    for client in clients:
        seen[client.domain] = seen.get(client.domain, 0) + 1
        turns.append((seen[client.domain], client.id))
    # Sorting is stable: within a turn, domains keep their order.
    in_turns = [name for _, name in sorted(turns, key=lambda turn: turn[0])]
    return in_turns[:count]
