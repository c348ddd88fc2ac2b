import re
from typing import Any

import pytest

from foul.erasure.receipts import Evidence, Statement
from foul.erasure.receipts.claims import not_claimed
from foul.erasure.receipts.keys import fingerprint, spaced
from foul.erasure.receipts.page import TITLES, cost_lines, moment, render_page, sentence, shown

from .statements import erasure, withdrawal

KEY = "ab" * 32


def rendered(told: Statement) -> str:
    content: dict[str, Any] = {
        "number": 7,
        "previous": "c" * 64,
        "issued": "2026-11-16T06:01:00Z",
        "written_by": "foul 0.1.0",
        "statement": told.to_dict(),
        "not_claimed": not_claimed(told),
    }
    return render_page(content, KEY)


def text(page: str) -> str:
    """What a reader sees."""
    body = re.sub(r"<style>.*?</style>|<[^>]*>", " ", page, flags=re.DOTALL)
    return " ".join(body.split()).replace(" .", ".")


def test_every_fact_is_on_the_page() -> None:
    page = text(rendered(erasure()))
    for fact in (
        "Receipt of an erasure",
        "R-0001",
        "client:east-0",
        "2026-11-01 09:00 UTC",
        "2026-12-01",
        "foul, foul 0.1.0, 3 rounds, in-process",
        "kappa=0.5",
        "loss=bounded",
        "a" * 64,
        "b" * 64,
        "0.512 now (between 0.470 and 0.550 with 95 % confidence); 0.610 before",
        "The policy accepts at most 0.600: met.",
        "41.0 % now; 97.0 % before; 40.0 % if retrained without the data",
        "1.5 MB",
        "2.0 GFLOP",
        "last update of east-0",
        "41 files (8.0 MB) were searched. Found: 0.",
        "The model before stays for 30 days.",
        "c" * 64,
        spaced(fingerprint(KEY)),
        "receipt-000007.json",
        *not_claimed(erasure()),
    ):
        assert fact.replace("'", "&#39;") in page, fact


def test_costs_of_retraining_stand_beside_those_of_the_erasure() -> None:
    costs = {"rounds": 12, "bytes_down": 90_000_000}
    page = text(rendered(erasure(kind="verification", retrain_costs=costs)))
    assert "Record of a verification" in page
    assert "The erasure Retraining without the data Rounds 3 12" in page
    assert "Sent to participants 1.5 MB 90.0 MB" in page
    assert "Work of participants 12.5 s not measured" in page


def test_the_page_never_speaks_of_certainty_it_has_not() -> None:
    for kind in TITLES:
        page = text(rendered(erasure(kind=kind))).lower()
        assert "certif" not in page
        assert "guarantee" not in page.replace("no mathematical guarantee is given", "")


def test_the_same_facts_give_the_same_bytes() -> None:
    assert rendered(erasure()) == rendered(erasure())


def test_the_page_needs_nothing_but_itself() -> None:
    page = rendered(erasure())
    assert "<script" not in page
    assert re.findall(r'(?:src|href)="(?!data:|#)[^"]*"', page) == []
    assert "default-src 'none'" in page


def test_names_are_text_and_not_markup() -> None:
    page = rendered(withdrawal(outcome="<script>alert(1)</script>", clients=["<b>&"]))
    assert "<script>" not in page
    assert "&lt;b&gt;&amp;" in page


def test_a_figure_that_nobody_measured_and_a_missed_policy_are_told() -> None:
    told = erasure(
        evidence=[
            Evidence("mia_auc", "", None, at_most=0.6, passed=False),
            Evidence("other", "Something else", 0.25, at_least=0.5, passed=False),
        ]
    )
    page = text(rendered(told))
    assert "not measured The policy accepts at most 0.600: not met." in page
    assert "Something else 0.250 The policy accepts at least 0.500: not met." in page


def test_a_figure_without_a_limit_or_words_of_its_own_is_told_plainly() -> None:
    told = erasure(evidence=[Evidence("kl_test", "", 0.25), Evidence("check_ra", "loss", 0.01)])
    page = text(rendered(told))
    assert "KL of Retrain's answers on test data 0.25 nats Loss 1.0 %" in page.replace("&#39;", "'")
    assert "The policy accepts" not in page


def test_sentences_have_a_capital_and_one_full_stop() -> None:
    assert sentence("every file was searched") == "Every file was searched."
    assert sentence("Withdrawn: changed their mind..") == "Withdrawn: changed their mind."
    assert sentence("") == ""


@pytest.mark.parametrize(("retrain", "warned"), [(None, True), (0.4, False)])
def test_without_retrain_the_page_says_what_cannot_be_told(
    retrain: float | None, warned: bool
) -> None:
    told = erasure(evidence=[Evidence("fa", "", 0.4, retrain=retrain)])
    assert ("No model was retrained" in rendered(told)) == warned


def test_the_model_in_service_is_named_in_words() -> None:
    assert "In service now the model that was made" in text(rendered(erasure()))


def test_a_small_event_has_a_small_page() -> None:
    page = text(rendered(withdrawal()))
    for absent in ("What was measured", "What it cost", "What was purged", "Method"):
        assert absent not in page


def test_figures_are_in_their_units() -> None:
    assert shown("fa", 0.5) == "50.0 %"
    assert shown("mia_auc", 0.5) == "0.500"
    assert shown("relearn", 3.0) == "3 rounds"
    assert shown("nobody knows", 0.5) == "0.500"


def test_costs_that_were_not_counted_are_left_out() -> None:
    told = list(cost_lines({"seconds": 30.0, "bytes_up": None, "unknown": 1.0}))
    assert told == [("Work of participants", "30.0 s")]


def test_moments_are_for_people() -> None:
    assert moment("2026-11-16T06:01:59Z") == "2026-11-16 06:01 UTC"
    assert moment("2026-12-01") == "2026-12-01"
