from pathlib import Path
from typing import Any

import pytest
import torch

from foul.experiments.reproduce.colored_mnist import (
    code_moments,
    environments,
    invariance,
    table,
    tell,
    trials,
    values,
)
from foul.experiments.reproduce.plan import Asked, Done
from foul.experiments.reproduce.sources import Source
from foul.federation.build import opened
from foul.federation.observer import Observer
from foul.learning.stage import learn
from foul.report.tables import MINUS

from .made_up import texts, trial

SOURCE = Source("colored-mnist", None, ())
SMOKE = Asked([SOURCE], "smoke", (), {"data.max_per_domain": 40, "learning.rounds": 1})


def told(domain: float, noise: float, accuracy: float, seed: int = 0) -> Done:
    found: dict[str, Any] = {
        name: {"accuracy": accuracy, "joint_accuracy": 0.5, "distance": 0.002, "relative": 0.1}
        for name in ("+90%", "+80%", "-90%")
    }
    at = {"noise": noise, "domain": domain}
    return Done(
        trial((), SOURCE, at=at), seed, Path("run"), {"rounds": [], "environments": found}, []
    )


def test_a_model_for_each_domain_with_and_without_noise() -> None:
    found = trials(Asked([SOURCE], "cpu"))
    assert [(t.config.data.domains, t.config.data.label_noise) for t in found] == [
        *((("+90%",), 0.25), (("+80%",), 0.25), (("-90%",), 0.25)),
        *((("+90%",), 0.0), (("+80%",), 0.0), (("-90%",), 0.0)),
    ]


def test_disparity_is_the_mean_square_between_class_means() -> None:
    home = torch.tensor([[0.0, 0.0], [1.0, 1.0]]), torch.tensor(0.5)
    there = torch.tensor([[0.0, 2.0], [1.0, 1.0]]), torch.tensor(9.0)
    assert invariance(home, there) == (1.0, 2.0)
    assert invariance(home, home) == (0.0, 0.0)


def test_a_model_of_one_domain_is_judged_in_all(tmp_path: Path) -> None:
    first = trials(SMOKE)[0]
    run = learn(first.config, tmp_path / "run")
    found = environments("+90%", first.config, run, Observer())
    assert list(found) == ["+90%", "+80%", "-90%"]
    assert all(0 <= figures["accuracy"] <= 1 for figures in found.values())
    # What the run says of its own domain is said again.
    own = run.summary()["accuracy"]["test"]["all"]["causal_accuracy"]
    assert found["+90%"]["accuracy"] == own
    assert all(figures["distance"] > 0 for figures in found.values())
    # Moments are those of the codes, computed one by one.
    with opened(first.config) as setting:
        means, variance = code_moments(setting, run.load_model()[0], "+90%", "test")
        again = code_moments(setting, run.load_model()[0], "+90%", "test")
        assert invariance((means, variance), again) == (0.0, 0.0)
        assert means.shape[0] == 2
        assert float(variance) > 0


def test_ours_minus_the_papers_stands_beside_ours() -> None:
    found = [
        told(n, noise, 0.70 + 0.02 * s, s) for n in (0, 1, 2) for noise in (0.25, 0) for s in (0, 1)
    ]
    noisy = [d for d in found if d.trial.at["noise"]]
    stat = values(noisy, "+80%", "-90%", "accuracy")
    assert stat is not None
    assert stat.mean == pytest.approx(0.71)
    assert stat.n == 2
    lines = table(noisy).lines
    assert [line.cells[0].text for line in lines] == ["+90%", "", "+80%", "", "-90%", ""]
    assert (lines[0].cells[2].text, lines[0].cells[2].beside) == ("71.0", f"{MINUS}18.5")
    assert texts(table(noisy))[1][2:4] == ["0.0020", "0.0003"]
    outcome = tell(Asked([SOURCE], "cpu"), found)
    assert len(outcome.tables) == 2
    assert any("decision 22" in note for note in outcome.notes)
