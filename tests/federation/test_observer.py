from typing import Any

import pytest

from foul.federation.observer import Observer, Observers

CALLS: list[tuple[str, tuple[Any, ...]]] = [
    ("on_stage", ("learning", 5, 2)),
    ("on_client", ("learn", "north-0", 1, 4)),
    ("on_round", ({"round": 1},)),
    ("on_message", ("text",)),
    ("on_work", ("decoding images", 1, 9)),
]


def hooks() -> set[str]:
    return {name for name in vars(Observer) if name.startswith("on_")}


@pytest.mark.parametrize(("hook", "arguments"), CALLS)
def test_every_hook_reaches_all_observers_in_order(hook: str, arguments: tuple[Any, ...]) -> None:
    seen: list[tuple[str, tuple[Any, ...]]] = []

    def recording(name: str) -> Observer:
        observer = Observer()
        setattr(observer, hook, lambda *args: seen.append((name, args)))
        return observer

    getattr(Observers(recording("a"), recording("b")), hook)(*arguments)
    assert seen == [("a", arguments), ("b", arguments)]


@pytest.mark.parametrize(("hook", "arguments"), CALLS)
def test_the_base_class_ignores_everything(hook: str, arguments: tuple[Any, ...]) -> None:
    getattr(Observer(), hook)(*arguments)


def test_several_observers_forward_every_hook() -> None:
    assert {hook for hook, _ in CALLS} == hooks() == hooks() & set(vars(Observers))
