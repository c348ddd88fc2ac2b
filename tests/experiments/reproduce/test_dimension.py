from typing import Any

from foul.experiments.reproduce.dimension import SHARES, picture, table, tell, trials
from foul.experiments.reproduce.plan import Asked
from foul.experiments.reproduce.rows import rows_of

from .made_up import PACS, REQUEST, done, texts

ASKED = Asked([PACS], "cpu")
TRIALS = trials(ASKED)
FIGURES: dict[str, dict[str, Any]] = {
    "learned": {"fa": 0.9},
    "Retrain": {"fa": 0.5},
    "FOUL (1)+(2)": {"fa": 0.6},
    "paper's (1)+(2)": {"fa": 0.9},
}


def test_every_share_learns_unlearns_and_retrains() -> None:
    assert [trial.config.model.k_channels for trial in TRIALS] == list(SHARES)
    assert {trial.config.model.v_channels for trial in TRIALS} == {24, 16, 8, 4}
    for trial in TRIALS:
        assert [variant.label for variant in trial.variants] == list(FIGURES)
        assert trial.forget == (REQUEST,)
        assert not trial.measures


def test_a_line_for_every_share_and_method() -> None:
    found = [done(trial, FIGURES) for trial in TRIALS]
    outcome = tell(ASKED, found)
    assert list(outcome.figures) == ["pacs-domain-sketch"]
    lines = texts(outcome.tables[0].table)
    assert len(lines) == 16
    assert [line[0] for line in lines if line[0]] == ["8 + 24", "16 + 16", "24 + 8", "28 + 4"]
    rows = {t.at["k"]: rows_of(t, REQUEST, found) for t in TRIALS[:2]}
    assert len(texts(table(rows))) == 8
    fa, _ = picture(rows, "PACS").axes
    assert [text.get_text() for text in fa.get_xticklabels()] == ["8", "16"]
