import sys
from pathlib import Path

import pytest

from foul.errors import UserError
from foul.runs.tensorboard import tensorboard_observer


def test_without_tensorboard_the_error_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(UserError, match=r"tensorboard=true needs.*foul\[tensorboard\]"):
        tensorboard_observer(tmp_path)


def test_scalars_are_written_with_the_first_round(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    observer = tensorboard_observer(tmp_path)
    observer.on_stage("learning", 2, 0)
    assert list(tmp_path.iterdir()) == []
    for round in (1, 2):
        observer.on_round(
            {"round": round, "validation_accuracy": round / 4, "losses": {"mid/gtc": 2.0 - round}}
        )
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    assert [(e.step, e.value) for e in events.Scalars("validation_accuracy")] == [
        (1, 0.25),
        (2, 0.5),
    ]
    assert [e.value for e in events.Scalars("loss/mid/gtc")] == [1.0, 0.0]
