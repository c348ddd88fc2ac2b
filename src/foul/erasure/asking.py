"""Whom an erasure may still ask."""

from collections.abc import Collection
from contextlib import AbstractContextManager

from foul.config.schema import Config
from foul.erasure.requests import infos
from foul.erasure.state import State
from foul.erasure.store import Store
from foul.federation.build import Setting, opened
from foul.federation.observer import Observer


def federation_of(
    store: Store, state: State, clients: Collection[str], config: Config, observer: Observer
) -> AbstractContextManager[Setting]:
    """The federation without its erased clients, but for these, who are asked a last time."""
    erased = state.erased.keys() - set(clients)
    known = infos([client for client in state.clients.values() if client.id not in erased])
    features = store.folder.path / "features"
    return opened(config, observer, features, without=erased, known=known)
