from dataclasses import replace
from typing import Any

import pytest

from foul.experiments.reproduce.methods import variants
from foul.experiments.reproduce.overall import overall
from foul.experiments.reproduce.plan import Done

from .made_up import done, texts, trial

LABELS = ("learned", "Retrain", "FATS", "FOUL (1)+(2)")
REQUESTS = ("domain:photo", "domain:sketch")
TRIAL = trial(variants("cpu", LABELS), forget=REQUESTS)
FIGURES = {
    ("Retrain", REQUESTS[0]): {"fa": 0.5, "ra": 0.8, "ta": 0.6, "mia_accuracy": 0.5},
    ("Retrain", REQUESTS[1]): {"fa": 0.3, "ra": 0.9, "ta": 0.6, "mia_accuracy": 0.5},
    ("FATS", REQUESTS[0]): {"fa": 0.6, "ra": 0.7, "ta": 0.6, "mia_accuracy": 0.5},
    ("FATS", REQUESTS[1]): {"fa": 0.2, "ra": 1.0, "ta": 0.6, "mia_accuracy": 0.48},
    ("FOUL (1)+(2)", REQUESTS[0]): {"fa": 0.52, "ra": 0.8, "ta": 0.6, "bytes": 400_000},
    ("FOUL (1)+(2)", REQUESTS[1]): {"fa": 0.3, "ra": 0.88, "ta": 0.5, "bytes": 200_000},
}


def found(*left_out: tuple[str, str]) -> list[Done]:
    results: list[dict[str, Any]] = []
    for request in REQUESTS:
        own = {
            label: figures
            for (label, asked), figures in FIGURES.items()
            if asked == request and (label, asked) not in left_out
        }
        results += [{**r, "forget": request} for r in done(TRIAL, own).results]
    return [replace(done(TRIAL, {}), results=results)]


def test_losses_are_averaged_not_gaps() -> None:
    shown, sentences = overall(TRIAL, found())
    fats, foul = texts(shown[0].table)
    # FA is 10 above and 10 below: 10 on average, not 0; RA 10 short and 10 better: 5.
    assert fats == ["FATS", "10.0", "5.0", "0.0", "1.0", "4.0", "100", "100"]
    assert foul == ["FOUL (1)+(2)", "1.0", "1.0", "5.0", "0.0", "1.8", "7.5", "100"]
    assert [line.cells[5].best for line in shown[0].table.lines] == [False, True]
    assert sentences == [
        "Nearest to Retrain over the domains of PACS: FOUL (1)+(2) (1.8), FATS (4.0)."
    ]
    assert "photo, sketch" in shown[0].caption


@pytest.mark.parametrize("request_", REQUESTS)
def test_who_failed_on_a_request_has_no_mean(request_: str) -> None:
    shown, _ = overall(TRIAL, found(("FATS", request_)))
    assert [row[0] for row in texts(shown[0].table)] == ["FOUL (1)+(2)"]


def test_a_single_request_has_no_mean() -> None:
    one = trial(variants("cpu", LABELS))
    assert overall(one, [done(one, {"Retrain": {}, "FATS": {}})]) == ([], [])
