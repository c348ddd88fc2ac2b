from pathlib import Path
from typing import Any

import pytest

from foul.experiments.reproduce.capacity import (
    INVARIANT,
    best_channels,
    picture,
    psnr,
    table,
    trials,
    values,
)
from foul.experiments.reproduce.plan import Asked, Done

from .made_up import PACS, texts, trial

ACCURACY = {8.0: 0.5, 16.0: 0.75, 24.0: 0.7}


def learned(accuracy: float) -> dict[str, Any]:
    told = {"accuracy": accuracy, "causal_accuracy": accuracy - 0.25}
    errors = {"mse_both": 0.01, "mse_k_only": 0.02, "mse_v_only": 0.04, "psnr": psnr(0.01)}
    return {"rounds": [], "accuracy": {"test": {"all": told}}, "reconstruction": errors}


def sweep() -> list[Done]:
    return [
        Done(trial((), at={"k": k}), seed, Path("run"), learned(accuracy + 0.02 * seed), [])
        for seed in (0, 1)
        for k, accuracy in ACCURACY.items()
    ]


def test_psnr_is_minus_ten_decades_of_the_error() -> None:
    assert psnr(0.01) == pytest.approx(20)
    assert psnr(1.0) == 0
    assert psnr(0.0) == pytest.approx(120)


def test_k_and_v_share_32_channels() -> None:
    found = trials(Asked([PACS], "cpu"))
    assert (
        [t.config.model.k_channels for t in found] == list(INVARIANT) == [4, 8, 12, 16, 20, 24, 28]
    )
    assert {t.config.model.k_channels + t.config.model.v_channels for t in found} == {32}
    assert {t.config.learning.rounds for t in found} == {15}
    assert {t.config.learning.rounds for t in trials(Asked([PACS], "paper"))} == {100}


def test_figures_are_means_over_seeds_by_channels() -> None:
    found = values(sweep(), "accuracy")
    assert {k: round(s.mean, 3) for k, s in found.items()} == {8.0: 51.0, 16.0: 76.0, 24.0: 71.0}
    assert found[8.0].n == 2
    assert values(sweep(), "psnr")[16.0].mean == pytest.approx(20)


def test_the_best_number_of_channels_is_named() -> None:
    assert best_channels(sweep()) == (
        "PACS: test accuracy is highest with 16 invariant channels; from 16 on the mean is 73.5 %, "
        "below it 51.0 %."
    )


def test_table_and_picture_show_every_number_of_channels() -> None:
    assert [line[0] for line in texts(table(sweep()))] == ["8 + 24", "16 + 16", "24 + 8"]
    figure = picture(sweep(), "PACS")
    left, right = figure.axes
    assert [text.get_text() for text in left.get_xticklabels()] == ["8", "16", "24"]
    assert len(right.get_lines()) >= 3
    names = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    assert names[:2] == ["joint head [z_K, z_V]", "z_K alone"]
    assert len(names) == 5
