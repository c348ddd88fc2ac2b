import shutil
from pathlib import Path

import pytest
from small_runs import Crash, StopAfter

from foul import UserError
from foul.erasure.relearning import relearn
from foul.erasure.store import Store


def test_learning_goes_on_from_the_model_in_service_without_the_erased(served: Store) -> None:
    before = served.state().current
    version = relearn(served, 2)
    assert (version.number, version.parent, version.rounds) == (2, before.number, 2)
    assert version.hash == served.service_hash() != before.hash
    body = served.entries()[-1].body
    assert body["participation"] == dict.fromkeys(
        ("east-0", "east-1", "east-2", "north-0", "north-2"), 2
    )
    assert body["costs"]["bytes_down"] > 0
    assert served.folder.load_model()[1]["round"] == 2
    assert not (served.path / "relearning.safetensors").exists()


def test_interrupted_it_goes_on_with_the_same_bits(served: Store, tmp_path: Path) -> None:
    other = Store.open(Path(shutil.copytree(served.folder.path, tmp_path / "undisturbed")))
    undisturbed = relearn(other, 3)
    before = served.service_hash()
    with pytest.raises(Crash):
        relearn(served, 3, observer=StopAfter(2))
    assert served.service_hash() == before
    version = relearn(served, 3)
    assert version.hash == undisturbed.hash
    assert served.entries()[-1].body["participation"] == other.entries()[-1].body["participation"]


def test_killed_before_it_was_noted_it_is_noted_once(
    served: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Store, "append", lambda *_: (_ for _ in ()).throw(Crash()))
        with pytest.raises(Crash):
            relearn(served, 1)
    made = served.service_hash()
    assert made != served.state().current.hash
    assert relearn(served, 1).hash == made
    assert [entry.kind for entry in served.entries()].count("relearned") == 1


def test_killed_before_it_was_noted_nothing_else_is_built_on_it(
    served: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Store, "append", lambda *_: (_ for _ in ()).throw(Crash()))
        with pytest.raises(Crash):
            relearn(served, 1)
    with pytest.raises(UserError, match="is not version 1"):
        relearn(served, 2)
    assert relearn(served, 1).number == 2


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), float("inf")])
def test_a_rate_that_teaches_nothing(served: Store, rate: float) -> None:
    with pytest.raises(UserError, match=r"A rate of .* teaches nothing\. Choose one above 0"):
        relearn(served, 1, rate)
