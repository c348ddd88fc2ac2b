import pytest
from pydantic import ValidationError

from foul.matching import MatchingOptions
from foul.unlearning import Foul, FoulOptions, paper_options
from foul.unlearning.foul.options import Pace


@pytest.mark.parametrize(
    ("values", "controlled"),
    [
        ({}, True),
        ({"control": False}, False),
        ({"matching": False}, False),
        ({"departed": True}, False),
    ],
)
def test_only_forget_clients_that_can_be_asked_steer(
    values: dict[str, object], controlled: bool
) -> None:
    assert FoulOptions.model_validate(values).controlled == controlled


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"departed": True, "target": 0.5}, "leave departed off"),
        ({"anchor": "all"}, "forget_from=centre needs anchor=retain"),
        ({"target": 1.5}, "less than or equal to 1"),
        ({"min_steps": 0}, "greater than or equal to 1"),
    ],
)
def test_what_does_not_fit_together_is_refused(values: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        FoulOptions.model_validate(values)


def test_the_paper_steers_nothing() -> None:
    """V alone, all clients' mean as anchor, negated deltas, one radius."""
    options = paper_options()
    assert not options.controlled
    assert options.scope == ("V",)
    assert (options.kappa, options.server_rate) == (0.5, 0.2)
    assert options.matching_options(options.kappa) == MatchingOptions(
        kappa=0.5,
        simplex="split",
        radius="kappa",
        radius_of="anchor",
        forget="negated",
        anchor="all",
        normalise="none",
        rescale=False,
    )
    assert paper_options(as_printed=True).matching_options(1.0).simplex == "joint"
    assert paper_options(as_printed=True).matching_options(1.0).radius == "sqrt_kappa"


def test_stored_updates_count_with_a_minus_whatever_forget_says() -> None:
    for forget in ("bounded", "negated"):
        options = FoulOptions.model_validate({"forget": forget, "departed": True})
        assert options.matching_options(1.0).forget == "negated"
        assert options.matching_options(1.0).sign == -1
    assert FoulOptions().matching_options(1.0).sign == 1


def test_what_is_needed_depends_on_who_is_there() -> None:
    online, departed = Foul(FoulOptions()).needs, Foul(FoulOptions(departed=True)).needs
    assert online == Foul.requirements
    assert (online.forget_online, online.stored_deltas) == (True, False)
    assert (departed.forget_online, departed.stored_deltas) == (False, True)
    assert online.l2u
    assert departed.l2u


@pytest.mark.parametrize(
    ("values", "unfit", "learned", "planned"),
    [
        ({}, False, 12, 7),
        ({}, False, 17, 8),
        ({}, False, 20, 10),
        ({}, False, 100, 10),
        ({}, True, 12, 10),
        ({"learned_share": 0.0}, False, 100, 7),
        ({"rounds": 12}, False, 20, 12),
        ({"extra": 0}, True, 100, 7),
        ({"departed": True}, True, 100, 7),
    ],
)
def test_rounds_are_planned_by_what_learning_took_and_left(
    values: dict[str, object], unfit: bool, learned: int, planned: int
) -> None:
    assert FoulOptions.model_validate(values).planned(unfit, learned) == planned


def test_the_pace_is_another_where_the_data_is_not_fitted() -> None:
    options = FoulOptions(
        epochs=1, rate=0.2, unfit_epochs=2, unfit_rate=0.1, unfit_momentum=0.4, unfit_kappa=0.3
    )
    assert options.pace(False) == Pace(1, 0.2, 0.0, 1.0)
    assert options.pace(True) == Pace(2, 0.1, 0.4, 0.3)
    # Nothing said of it, it is the same; and a smaller radius is a wish.
    assert FoulOptions(rate=0.2, unfit_rate=None).pace(True).rate == 0.2
    assert FoulOptions(unfit_kappa=None).pace(True).kappa == 1.0
    assert FoulOptions(kappa=0.1).pace(True).kappa == 0.1
    # The paper knows no such thing.
    assert paper_options().pace(True) == paper_options().pace(False)
