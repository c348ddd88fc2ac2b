from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from foul.evaluation.attacks import fitted
from foul.evaluation.attacks.fitted import FITTED, features, logistic, svm
from foul.evaluation.attacks.roc import auc
from foul.evaluation.attacks.statistics import loss

from .aligned import aligned

Attack = Callable[..., tuple[NDArray[np.float64], NDArray[np.float64]]]
both = pytest.mark.parametrize("attack", FITTED.values(), ids=FITTED.keys())


def test_features_by_hand() -> None:
    logits = np.log([[0.1, 0.6, 0.3]])
    expected = [0.6, 0.3, 0.1, np.log(0.1), np.log(0.1 / 0.9)]
    np.testing.assert_allclose(features(logits), [expected])


@both
def test_separable_groups_are_told_apart(attack: Attack) -> None:
    rng = np.random.default_rng(0)
    members, others = aligned(rng, 30, lead=20), aligned(rng, 12, lead=-20)
    assert auc(*attack(members, others, rng)) == 1


@both
def test_it_finds_what_no_threshold_finds(attack: Attack) -> None:
    # The others' true class is ahead by 2; one half of the members' by 4, the other half's by -4.
    rng = np.random.default_rng(1)
    members, others = aligned(rng, 150, 3, scale=0.1), aligned(rng, 100, 3, scale=0.1)
    members[:75, 0] += 4
    members[75:, 0] -= 4
    others[:, 0] += 2
    assert auc(loss(members), loss(others)) == pytest.approx(0.5)
    assert auc(*attack(members, others, rng)) > 0.9


@both
def test_noise_is_chance(attack: Attack) -> None:
    rng = np.random.default_rng(2)
    found = [auc(*attack(aligned(rng, 60), aligned(rng, 40), rng)) for _ in range(15)]
    # One AUC varies by 0.08, so the mean by 0.02.
    assert np.mean(found) == pytest.approx(0.5, abs=0.06)


def test_an_svm_scored_on_what_it_was_fitted_to_would_find_members_in_noise() -> None:
    rng = np.random.default_rng(2)
    members, others = aligned(rng, 60), aligned(rng, 40)
    x = StandardScaler().fit_transform(features(np.concatenate([members, others])))
    scores = SVC(class_weight="balanced").fit(x, np.arange(100) < 60).decision_function(x)
    assert auc(scores[:60], scores[60:]) > 0.65
    assert auc(*svm(members, others, rng)) < 0.6


@both
def test_groups_of_different_sizes_weigh_the_same(attack: Attack) -> None:
    # Otherwise nearly all would be called members, and the scores were not around 0.
    rng = np.random.default_rng(3)
    members, others = attack(aligned(rng, 400, lead=1), aligned(rng, 40, lead=-1), rng)
    assert np.median(members) > 0 > np.median(others)


@both
@pytest.mark.parametrize("outputs", [[0.0, 0.0, 0.0], [1000.0, -1000.0, -1000.0]])
def test_equal_outputs_are_exactly_chance(attack: Attack, outputs: list[float]) -> None:
    rng = np.random.default_rng(0)
    members, others = np.tile(outputs, (23, 1)), np.tile(outputs, (11, 1))
    assert auc(*attack(members, others, rng)) == 0.5


@both
def test_a_constant_feature_among_others_is_no_trouble(attack: Attack) -> None:
    # Two classes whose third is impossible: its probability is 0 throughout.
    rng = np.random.default_rng(0)
    members, others = aligned(rng, 20, 3, lead=3), aligned(rng, 15, 3)
    members[:, 2] = others[:, 2] = -1000
    assert auc(*attack(members, others, rng)) > 0.6


@both
def test_the_units_of_features_do_not_matter(
    attack: Attack, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(6)
    groups = aligned(rng, 30, 3, lead=1), aligned(rng, 20, 3)
    before = attack(*groups, np.random.default_rng(0))
    units = np.array([1, 1e3, 1e-3, 50, 1])
    monkeypatch.setattr(fitted, "features", lambda logits: 7 + units * features(logits))
    after = attack(*groups, np.random.default_rng(0))
    np.testing.assert_allclose(np.concatenate(after), np.concatenate(before), atol=1e-3)


@both
@settings(max_examples=25)
@given(st.integers(1, 7), st.integers(1, 7))
def test_small_groups_have_fewer_folds_and_all_are_scored(
    attack: Attack, members: int, others: int
) -> None:
    rng = np.random.default_rng(0)
    scores = attack(aligned(rng, members, lead=9), aligned(rng, others, lead=-9), rng)
    assert [len(group) for group in scores] == [members, others]
    alone = min(members, others) == 1
    assert auc(*scores) == (0.5 if alone else 1)


def test_no_sample_is_scored_by_what_was_fitted_to_it() -> None:
    is_member = np.arange(23) < 14
    scored = []
    for fit, score in fitted._folds(is_member, np.random.default_rng(0), None):
        assert sorted([*fit, *score]) == list(range(23))
        assert is_member[score].sum() in (2, 3)
        scored += list(score)
    assert sorted(scored) == list(range(23))


def test_the_svm_is_fitted_to_so_many_of_a_group_and_scores_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes = []

    class Counted(SVC):  # type: ignore[misc]
        def fit(self, x: NDArray[np.float64], y: NDArray[np.bool_]) -> "Counted":
            sizes.append((int(y.sum()), int((~y).sum())))
            super().fit(x, y)
            return self

    monkeypatch.setattr(fitted, "SVC", Counted)
    monkeypatch.setattr(fitted, "SVM_SAMPLES", 10)
    rng = np.random.default_rng(0)
    members, others = svm(aligned(rng, 50, lead=9), aligned(rng, 10, lead=-9), rng)
    assert sizes == [(10, 8)] * 5
    assert members.min() > others.max()


@both
def test_a_seed_decides_the_scores(attack: Attack) -> None:
    rng = np.random.default_rng(4)
    groups = aligned(rng, 30), aligned(rng, 20)
    first, again, another = (attack(*groups, np.random.default_rng(seed))[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, another)


def test_one_class_cannot_be_attacked() -> None:
    with pytest.raises(ValueError, match="two classes"):
        logistic(np.zeros((5, 1)), np.zeros((5, 1)), np.random.default_rng(0))
