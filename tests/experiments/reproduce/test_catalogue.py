import pytest

from foul.data.known import known
from foul.errors import UserError
from foul.experiments.reproduce.catalogue import EXPERIMENTS, experiment
from foul.experiments.reproduce.plan import Asked
from foul.experiments.reproduce.sources import Source

from .made_up import PACS

NAMES = [
    "table-main",
    "table-appendix",
    "table-cost",
    "fig-forgetting",
    "fig-tradeoff",
    "fig-coefficients",
    "table-colored-mnist",
    "fig-capacity",
    "fig-kappa-eta",
    "fig-dimension",
]


def test_the_ten_results_of_the_paper() -> None:
    assert list(EXPERIMENTS) == NAMES
    for entry in EXPERIMENTS.values():
        assert entry.what
        assert f"about {entry.minutes} minutes" in entry.budget
        assert entry.minutes <= 90
        for name in entry.sets:
            known(name)


def test_names_are_found_however_they_are_punctuated() -> None:
    assert experiment("Table Main").name == "table-main"
    assert experiment("fig_kappa_eta").name == "fig-kappa-eta"
    with pytest.raises(UserError, match=r"'table-mian'.*Did you mean 'table-main'"):
        experiment("table-mian")


@pytest.mark.parametrize("name", NAMES)
def test_trials_have_labels_of_their_own(name: str) -> None:
    entry = EXPERIMENTS[name]
    source = Source("colored-mnist", None, ()) if entry.embedded else PACS
    for size in ("cpu", "paper", "smoke"):
        trials = entry.trials(Asked([source], size))
        assert len({trial.label for trial in trials}) == len(trials)
        for trial in trials:
            labels = [variant.label for variant in trial.variants]
            assert len(set(labels)) == len(labels)
            assert bool(trial.forget) == bool(labels)


def test_experiments_share_what_they_learn() -> None:
    """The same configuration is the same run folder."""
    asked = Asked([PACS], "cpu")
    first = EXPERIMENTS["table-main"].trials(asked)[0].config
    for name in ("table-cost", "fig-tradeoff", "fig-forgetting", "fig-kappa-eta"):
        assert [trial.config for trial in EXPERIMENTS[name].trials(asked)] == [first]
    capacity = [trial.config for trial in EXPERIMENTS["fig-capacity"].trials(asked)]
    dimension = [trial.config for trial in EXPERIMENTS["fig-dimension"].trials(asked)]
    assert all(config in capacity for config in dimension)
