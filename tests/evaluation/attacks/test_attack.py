import json
import math

import numpy as np
import pytest
from scipy.stats import norm

from foul.errors import UserError
from foul.evaluation.attacks import (
    ATTACKS,
    STATISTICS,
    attack_scores,
    auc,
    judge,
    roc_points,
    run_attacks,
    tpr_at,
)
from foul.seeds import numpy_generator

from .aligned import aligned


def test_the_default_attacks_find_members_that_were_learned() -> None:
    rng = np.random.default_rng(0)
    members, others = aligned(rng, 60, lead=20), aligned(rng, 30, lead=20)
    others[:, :2] = others[:, 1::-1]
    results = run_attacks(members, others, seed=0)
    assert tuple(results) == ATTACKS
    for name, result in results.items():
        if name == "entropy":
            # It cannot see that the others are sure of a wrong class.
            assert result.auc_low < 0.5 < result.auc_high
        elif name in STATISTICS:
            assert result.auc == result.auc_low == result.accuracy == result.tpr_1 == 1
        else:
            assert result.auc > 0.99


def test_samples_of_one_distribution_are_not_told_apart() -> None:
    held: dict[str, list[bool]] = {name: [] for name in ATTACKS}
    for seed in range(10):
        rng = np.random.default_rng(seed)
        groups = aligned(rng, 60, lead=2), aligned(rng, 40, lead=2)
        for name, result in run_attacks(*groups, seed).items():
            held[name].append(result.auc_low <= 0.5 <= result.auc_high)
    for name, inside in held.items():
        assert sum(inside) >= 7, name


def test_loss_confidence_and_margin_rank_alike() -> None:
    rng = np.random.default_rng(1)
    groups = aligned(rng, 80, lead=2), aligned(rng, 50)
    results = run_attacks(*groups, 0, ["loss", "confidence", "margin"])
    assert len({result.auc for result in results.values()}) == 1
    assert len({str(result.roc) for result in results.values()}) == 1


def test_a_result_depends_neither_on_the_order_nor_on_the_choice_of_attacks() -> None:
    rng = np.random.default_rng(2)
    groups = aligned(rng, 30, lead=1), aligned(rng, 20)
    together = run_attacks(*groups, 5)
    assert run_attacks(*groups, 5, ATTACKS[::-1]) == together
    for name in ATTACKS:
        assert run_attacks(*groups, 5, [name]) == {name: together[name]}
    assert run_attacks(*groups, 6) != together


@pytest.mark.parametrize("name", [*STATISTICS, "logistic", "svm"])
def test_each_attack_is_judged_by_its_scores(name: str) -> None:
    rng = np.random.default_rng(3)
    groups = aligned(rng, 30, lead=1), aligned(rng, 20)
    stream = numpy_generator(4, f"attack/{name}")
    scores = attack_scores(name, *groups, stream)
    assert run_attacks(*groups, 4, [name])[name] == judge(*scores, stream)
    if name in STATISTICS:
        np.testing.assert_array_equal(scores[1], STATISTICS[name](groups[1]))


def test_a_judgement_says_what_the_curve_says() -> None:
    rng = np.random.default_rng(4)
    members, others = rng.normal(1, 1, 90), rng.normal(0, 1, 70)
    result = judge(members, others, rng)
    assert (result.members, result.others) == (90, 70)
    assert result.auc == auc(members, others)
    assert result.tpr_1 == tpr_at(0.01, members, others)
    assert result.roc == np.column_stack(roc_points(members, others)).tolist()
    assert result.auc_low < result.auc < result.auc_high
    assert result.accuracy_low < result.accuracy < result.accuracy_high
    assert result.tpr_1_low < result.tpr_1 < result.tpr_1_high


def test_the_accuracy_and_its_interval_are_of_the_same_thresholds() -> None:
    # Halves {10, 0} and {6, 2.9} judge each other without a mistake; {10, 2.9} misses 6.
    found = set()
    for seed in range(20):
        result = judge([10.0, 6.0], [2.9, 0.0], np.random.default_rng(seed))
        assert result.accuracy_low <= result.accuracy <= result.accuracy_high
        found.add((result.accuracy, result.accuracy_low))
    assert found == {(1, 1), (0.75, 0.5)}


def test_known_gaussians_lie_in_the_intervals() -> None:
    rng = np.random.default_rng(5)
    result = judge(rng.normal(1, 1, 3000), rng.normal(0, 1, 1000), rng)
    assert result.auc_low <= norm.cdf(1 / math.sqrt(2)) <= result.auc_high
    assert result.accuracy_low <= norm.cdf(0.5) <= result.accuracy_high
    assert result.tpr_1_low <= norm.cdf(1 + norm.ppf(0.01)) <= result.tpr_1_high
    assert len(result.roc) <= 200


def test_an_fpr_of_one_in_a_thousand_needs_a_thousand_others() -> None:
    rng = np.random.default_rng(6)
    members, others = rng.normal(2, 1, 50), rng.normal(0, 1, 1000)
    assert judge(members, others, rng).tpr_01 == tpr_at(0.001, members, others)
    assert judge(members, others[1:], rng).tpr_01 is None


def test_a_result_survives_json() -> None:
    rng = np.random.default_rng(7)
    told = judge(rng.normal(size=5), rng.normal(size=4), rng).to_dict()
    assert json.loads(json.dumps(told)) == told
    assert told["others"] == 4


@pytest.mark.parametrize("members", [1, 3])
def test_a_single_other_is_enough_for_an_answer(members: int) -> None:
    rng = np.random.default_rng(8)
    for name, result in run_attacks(aligned(rng, members, lead=9), aligned(rng, 1), 0).items():
        assert 0 <= result.auc_low <= result.auc <= result.auc_high <= 1, name
        assert result.accuracy == 0.5


def test_an_unknown_attack_is_refused_before_any_is_run() -> None:
    nothing = np.empty((0, 3))
    with pytest.raises(UserError, match=r"There is no attack 'modifed'.*'modified_entropy'"):
        run_attacks(nothing, nothing, 0, ["loss", "modifed"])
    with pytest.raises(UserError, match=r"Choose one of: loss, .*, margin, logistic, svm"):
        attack_scores("zzz", nothing, nothing, np.random.default_rng(0))


@pytest.mark.parametrize("name", ATTACKS)
def test_an_empty_group_cannot_be_attacked(name: str) -> None:
    some, none = np.zeros((3, 4)), np.empty((0, 4))
    for groups in ((some, none), (none, some)):
        with pytest.raises(ValueError, match="empty"):
            run_attacks(*groups, 0, [name])


@pytest.mark.parametrize("shape", [(5, 3), (5,), (5, 4, 1)])
def test_logits_of_other_shapes_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"not \(6, 4\) and"):
        run_attacks(np.zeros((6, 4)), np.zeros(shape), 0)


@pytest.mark.parametrize("name", ATTACKS)
def test_outputs_of_a_model_that_diverged_are_refused(name: str) -> None:
    broken = np.full((6, 3), np.nan)
    with pytest.raises(ValueError, match="NaN"):
        run_attacks(broken, np.zeros((6, 3)), 0, [name])
