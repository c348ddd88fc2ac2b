import json
from pathlib import Path
from typing import Any

import pytest

from foul.runs.folder import RunFolder
from foul.unlearning.case_of_run import learned_scores
from foul.unlearning.method import LearnedScores


def told(accuracy: float | None, loss: float | None) -> dict[str, Any]:
    return {"samples": 0 if loss is None else 10, "accuracy": accuracy, "loss": loss}


def test_what_clients_told_of_the_learned_model(tmp_path: Path) -> None:
    """Who has no held-out samples has no gap, and who has no training samples tells nothing."""
    splits = {
        "train": {"a": told(0.9, 0.3), "b": told(0.8, 0.4), "c": told(None, None)},
        "validation": {"a": told(0.5, 2.0), "b": told(None, None), "c": told(0.5, 2.0)},
    }
    accuracy = {split: {"clients": clients} for split, clients in splits.items()}
    (tmp_path / "summary.json").write_text(json.dumps({"accuracy": accuracy}))
    scores = learned_scores(RunFolder(tmp_path))
    assert scores.losses == {"a": 0.3, "b": 0.4}
    assert scores.gaps == {"a": pytest.approx(0.4)}
    assert scores.held_out == {"a": 0.5, "c": 0.5}


def test_a_run_that_was_not_evaluated_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "summary.json").write_text("{}")
    assert learned_scores(RunFolder(tmp_path)) == LearnedScores()
