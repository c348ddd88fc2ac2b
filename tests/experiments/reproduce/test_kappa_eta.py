from typing import Any

from foul.experiments.reproduce.kappa_eta import ETAS, KAPPAS, best_values, picture, swept, table
from foul.experiments.reproduce.methods import variants
from foul.experiments.reproduce.rows import rows_of
from foul.unlearning.methods import make_method

from .made_up import REQUEST, done, texts, trial

TRIAL = trial((*variants("cpu", ("learned", "Retrain")), *swept("cpu")))


def figures() -> dict[str, dict[str, Any]]:
    """The larger kappa, the lower FA: Retrain's 0.5 is met at kappa 0.5 by the paper's form."""
    found: dict[str, dict[str, Any]] = {"learned": {"fa": 0.9}, "Retrain": {"fa": 0.5}}
    for variant in TRIAL.variants[2:]:
        found[variant.label] = {
            "fa": 0.75 - 0.5 * variant.at["kappa"] if "paper" in variant.label else 0.4
        }
    return found


def test_each_point_is_run_once() -> None:
    points = swept("cpu")
    # The point where both have their usual value belongs to both sweeps.
    assert len(points) == 2 * (len(KAPPAS) + len(ETAS) - 1)
    for variant in points:
        options = make_method(variant.method, variant.options).options
        assert options.kappa == variant.at["kappa"]
        assert options.server_rate == variant.at["eta"]
    assert len(swept("smoke")) < len(points)


def test_the_value_nearest_to_retrain_is_named_beside_the_papers() -> None:
    rows = rows_of(TRIAL, REQUEST, [done(TRIAL, figures())])
    told = best_values(rows, "pacs")
    assert told[0] == (
        "paper's, kappa: nearest to Retrain at 0.5 (off by 0.0), largest RA - FA at 2 (+105.0); "
        "the paper: 0.5."
    )
    assert "the paper: 0.2." in told[1]
    assert "the paper: 0.2 to 0.5." in best_values(rows, "terra-incognita")[0]
    assert all("the paper" not in text for text in best_values(rows, "digits28"))
    assert "the paper" not in told[2]


def test_two_panels_and_a_line_for_every_point() -> None:
    rows = rows_of(TRIAL, REQUEST, [done(TRIAL, figures())])
    figure = picture(rows, "PACS")
    eta, kappa = figure.axes
    assert [text.get_text() for text in kappa.get_xticklabels()] == ["0.1", "0.2", "0.5", "1", "2"]
    assert [text.get_text() for text in eta.get_xticklabels()] == ["0.05", "0.1", "0.2", "0.5", "1"]
    assert len(texts(table(rows))) == len(TRIAL.variants)
