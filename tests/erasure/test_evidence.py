import pytest

from foul.erasure.evidence import KEYS, Figures, judge, measure
from foul.erasure.policy import Accept
from foul.erasure.requests import infos
from foul.erasure.store import Store
from foul.federation.build import opened
from foul.unlearning.request import ForgetRequest

ACCEPT = Accept(mia_auc_high=0.6, mia_auc_low=0.4, retain_loss=0.05, retain_test_loss=0.1)


def figures(**values: float | None) -> Figures:
    usual = {"mia_high": 0.55, "mia_low": 0.45, "ra": 0.9, "retain_test": 0.8}
    usual |= {"fa": 0.7, "forget_test": 0.65}
    return {**dict.fromkeys(KEYS), **usual, **values}


@pytest.mark.parametrize(
    ("after", "missed"),
    [
        ({}, []),
        ({"mia_high": 0.6}, []),
        ({"mia_high": 0.61}, ["mia_high"]),
        ({"mia_low": 0.39}, ["mia_low"]),
        ({"fa": 0.75}, []),
        ({"fa": 0.85}, ["fa"]),
        ({"fa": 0.2}, []),
        ({"ra": 0.86}, []),
        ({"ra": 0.84}, ["ra"]),
        ({"ra": 1.0}, []),
        ({"retain_test": 0.69, "mia_high": 0.7}, ["mia_high", "retain_test"]),
    ],
)
def test_each_threshold_counts_for_itself(after: dict[str, float], missed: list[str]) -> None:
    checks = judge(figures(), figures(**after), ACCEPT, exact=False)
    assert [check.key for check in checks if not check.passed] == missed


@pytest.mark.parametrize(
    ("missing", "exact", "passed"),
    [
        ("exact", True, True),
        ("exact", False, False),
        ("accept", False, True),
        ("refuse", True, False),
    ],
)
def test_what_could_not_be_measured(missing: str, exact: bool, passed: bool) -> None:
    accept = Accept.model_validate({**ACCEPT.model_dump(), "missing": missing})
    after = figures(mia_high=None, mia_low=None, forget_test=None)
    checks = judge(figures(), after, accept, exact)
    assert {c.key: c.passed for c in checks if c.value is None} == dict.fromkeys(
        ("mia_high", "mia_low", "fa"), passed
    )
    assert "not measured" in str(checks[0])


def test_clients_out_of_reach_are_not_asked(store: Store) -> None:
    config, state = store.folder.config(), store.state()
    tensors, _ = store.folder.load_model()
    request = ForgetRequest.parse("client:north-0", infos(state.active))
    with opened(config) as setting:
        asked = measure(setting, config, tensors, request, True)
        setting.federation.ledger.totals.clear()
        alone = measure(setting, config, tensors, request, False)
    assert set(alone) == set(asked) == set(KEYS)
    assert {key for key in KEYS if alone[key] is not None} == {"ra", "retain_test"}
    assert (alone["ra"], alone["retain_test"]) == (asked["ra"], asked["retain_test"])
    assert asked["mia_high"] is not None
