import pytest
from pydantic import ValidationError

from foul.matching import MatchingOptions
from foul.unlearning import Foul, FoulOptions, paper_options
from foul.unlearning.foul.options import Fit, Pace

FITTED: tuple[Fit, ...] = ("fitted", "sure")
LEARNING: tuple[Fit, ...] = ("unfit", "overfit")


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
    assert options.matching_options("fitted") == MatchingOptions(
        kappa=0.5,
        simplex="split",
        radius="kappa",
        radius_of="anchor",
        forget="negated",
        anchor="all",
        normalise="none",
        rescale=False,
    )
    assert paper_options(as_printed=True).matching_options("fitted").simplex == "joint"
    assert paper_options(as_printed=True).matching_options("fitted").radius == "sqrt_kappa"


def test_stored_updates_count_with_a_minus_whatever_forget_says() -> None:
    for forget in ("weakest", "bounded", "negated"):
        options = FoulOptions.model_validate({"forget": forget, "departed": True})
        assert options.matching_options("fitted").forget == "negated"
        assert options.matching_options("fitted").sign == -options.beta
    for forget, sign in (("weakest", 2), ("bounded", 2), ("negated", -2)):
        assert (
            FoulOptions.model_validate({"forget": forget}).matching_options("fitted").sign == sign
        )


def test_what_is_needed_depends_on_who_is_there() -> None:
    online, departed = Foul(FoulOptions()).needs, Foul(FoulOptions(departed=True)).needs
    assert online == Foul.requirements
    assert (online.forget_online, online.stored_deltas) == (True, False)
    assert (departed.forget_online, departed.stored_deltas) == (False, True)
    assert online.l2u
    assert departed.l2u


@pytest.mark.parametrize(
    ("values", "fit", "learned", "planned"),
    [
        ({}, "fitted", 12, 5),
        ({}, "fitted", 17, 7),
        ({}, "fitted", 20, 9),
        ({}, "fitted", 100, 10),
        ({}, "unfit", 12, 10),
        ({}, "sure", 12, 5),
        ({}, "sure", 22, 6),
        ({}, "sure", 36, 10),
        ({"learned_share": 0.0}, "fitted", 100, 5),
        ({"learned_share": 0.0}, "sure", 36, 10),
        ({"sure_share": 0.0}, "sure", 36, 5),
        ({"rounds": 12}, "fitted", 20, 12),
        ({}, "overfit", 3, 10),
        ({"extra": 0}, "unfit", 100, 5),
        ({"departed": True}, "unfit", 100, 5),
    ],
)
def test_rounds_are_planned_by_what_learning_took_and_left(
    values: dict[str, object], fit: Fit, learned: int, planned: int
) -> None:
    assert FoulOptions.model_validate(values).planned(fit, learned) == planned


def test_the_pace_is_another_where_the_data_is_not_fitted_or_the_model_is_sure() -> None:
    unfit = {"unfit_epochs": 2, "unfit_rate": 0.1, "unfit_momentum": 0.4, "unfit_kappa": 0.3}
    deep = {"depth": 2, "unfit_depth": 5, "aside_kappa": 3}
    values = {"epochs": 1, "rate": 0.2, "sure_epochs": 3}
    options = FoulOptions.model_validate(values | unfit | deep)
    assert options.pace("fitted") == Pace(1, 0.2, 1, 0.0, 3.0, "weakest", 2)
    assert options.pace("unfit") == Pace(2, 0.1, 2, 0.4, 0.3, "weakest", 5)
    assert options.pace("overfit") == Pace(2, 0.1, 2, 0.4, 3.0, "weakest", 5)
    assert options.pace("sure") == Pace(3, 0.2, 1, 0.0, 3.0, "weakest", 2)
    # Nothing said of it, it is the same; and a smaller radius is a wish.
    assert FoulOptions(rate=0.2, unfit_rate=None).pace("unfit").rate == 0.2
    same = FoulOptions(epochs=1, sure_epochs=None)
    assert same.pace("sure") == same.pace("fitted")
    # Who wants more epochs has them.
    assert FoulOptions(epochs=5, sure_epochs=2).pace("sure").epochs == 5
    # Another loss is a wish; where there is something to learn, it may be another one.
    for forget in ("bounded", "negated"):
        chosen = FoulOptions.model_validate({"forget": forget})
        assert {chosen.pace(fit).forget for fit in FITTED + LEARNING} == {forget}
    other = FoulOptions(unfit_forget="bounded")
    assert {other.pace(fit).forget for fit in FITTED} == {"weakest"}
    assert {other.pace(fit).forget for fit in LEARNING} == {"bounded"}
    assert FoulOptions(unfit_kappa=None, unfit_forget="bounded").pace("unfit").kappa == 1.0
    assert FoulOptions(kappa=0.1, unfit_forget="bounded").pace("unfit").kappa == 0.1


def test_who_brings_down_the_weakest_answers_of_fitted_data_levels() -> None:
    options = FoulOptions(level=0.1, sure_level=0.2, overfit_level=0.7)
    for estimated in (False, True):
        assert options.levelling("fitted", estimated) == 0.1
        assert options.levelling("sure", estimated) == 0.2
        # There depth does it.
        assert options.levelling("unfit", estimated) == 0
    # The estimate for a whole domain may be lowered to held-out accuracy, for the same end.
    assert options.levelling("overfit", estimated=False) == 0.7
    assert options.levelling("overfit", estimated=True) == 0
    # A delta of learning has nothing to level.
    assert {FoulOptions(forget="negated").levelling(fit, False) for fit in FITTED + LEARNING} == {0}
    # A bounded loss has a slope of its own.
    bounded = FoulOptions(forget="bounded")
    assert {bounded.levelling(fit, False) for fit in FITTED + LEARNING} == {0}


def test_who_brings_down_the_weakest_answers_steps_aside() -> None:
    options = FoulOptions(aside=0.5, aside_kappa=3)
    assert {options.stepping_aside(fit) for fit in FITTED + LEARNING} == {0.5}
    for fit in ("sure", "overfit"):
        chosen = options.matching_options(fit)
        told = (chosen.normalise, chosen.radius_of, chosen.kappa)
        assert told == ("retain_least", "larger_mean", 3)
    assert options.matching_options("unfit").kappa == options.unfit_kappa == 0.5
    # In fewer rounds each has to get further, up to all that there may be.
    assert [options.matching_options("sure", n).kappa for n in (5, 8, 10)] == [6, 3.75, 3]
    # A smaller radius is a wish.
    assert FoulOptions(kappa=0.1, aside_kappa=2).matching_options("sure").kappa == 0.2
    # Other choices of the matching stay as they are.
    every = FoulOptions(aside=0.1, normalise="none", radius_of="anchor", kappa=4, aside_kappa=2)
    chosen = every.matching_options("fitted")
    assert (chosen.normalise, chosen.radius_of, chosen.kappa) == ("none", "anchor", 8)
    # Another loss is too flat for it, and of who has left nothing is asked.
    plain = FoulOptions(unfit_forget="bounded")
    assert {plain.stepping_aside(fit) for fit in LEARNING} == {0.0}
    chosen = plain.matching_options("overfit")
    assert (chosen.normalise, chosen.radius_of, chosen.kappa) == ("retain_mean", "mean_norm", 1)
    for values in (
        *({"forget": "negated"}, {"forget": "bounded"}, {"departed": True}),
        *({"matching": False}, {"aside": 0.0}),
    ):
        away = FoulOptions.model_validate({"aside": 0.1, **values})
        assert {away.stepping_aside(fit) for fit in FITTED + LEARNING} == {0.0}
    assert paper_options().stepping_aside("sure") == 0


def test_an_aim_does_not_follow_who_pulls_it_down() -> None:
    plain = FoulOptions(aside=0, level=0)
    assert all(plain.follows_held_out(fit) for fit in FITTED + LEARNING)
    assert not FoulOptions(aside=0, level=0, indistinct=False).follows_held_out("fitted")
    assert not FoulOptions(aside=0, level=0.1).follows_held_out("fitted")
    # By default, forget clients step aside.
    assert not any(FoulOptions().follows_held_out(fit) for fit in FITTED + LEARNING)
    assert all(FoulOptions(unfit_forget="bounded").follows_held_out(fit) for fit in LEARNING)


@pytest.mark.parametrize(
    ("loss", "gap", "fit"),
    [
        *((0.36, 0.0, "unfit"), (0.35, 0.0, "fitted"), (0.02, 0.0, "fitted")),
        *((0.019, 0.0, "sure"), (None, 0.0, "fitted")),
        *((0.36, 0.3, "unfit"), (0.35, 0.3, "overfit"), (0.35, 0.2, "fitted")),
        *((0.019, 0.3, "sure"), (None, 0.3, "fitted"), (0.35, None, "fitted")),
    ],
)
def test_loss_and_gap_say_how_well_the_data_is_fitted(
    loss: float | None, gap: float | None, fit: str
) -> None:
    assert FoulOptions(unfit=0.35, overfit=0.2, sure=0.02).fit(loss, gap) == fit


def test_the_papers_form_has_one_pace() -> None:
    paper = paper_options()
    assert {paper.fit(loss, gap) for loss in (0.0, 0.1) for gap in (0.0, 1.0)} == {"fitted"}
    paces = [paper.pace(fit) for fit in ("unfit", "overfit", "fitted", "sure")]
    assert paces == 4 * [paces[0]]


@pytest.mark.parametrize(("forgotten", "samples"), [(1, 1280), (3, 427), (5, 256), (50, 256)])
def test_few_forget_clients_try_radii_with_more_samples_each(forgotten: int, samples: int) -> None:
    assert FoulOptions().tried(forgotten, 10**6) == samples
    assert FoulOptions(probe_together=0).tried(forgotten, 10**6) == 256


@pytest.mark.parametrize(
    ("forgotten", "retained", "samples"),
    [(5, 2700, 65), (1, 3420, 411), (5, 14400, 256), (1, 18240, 1280), (3, 1, 1)],
)
def test_to_try_radii_stays_cheap_beside_what_retain_clients_train(
    forgotten: int, retained: int, samples: int
) -> None:
    assert FoulOptions(probe_share=0.12).tried(forgotten, retained) == samples
    free = FoulOptions(probe_share=0.0)
    assert free.tried(forgotten, retained) == free.tried(forgotten, 10**6)
