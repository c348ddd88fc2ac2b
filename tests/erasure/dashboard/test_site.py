import html as entities
import json
import re
from collections.abc import Mapping
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path

import pytest

from foul.erasure.clock import today
from foul.erasure.dashboard.federation import federations
from foul.erasure.dashboard.site import Response, Site

from .example import CLIENTS, eventful_store, filed_in_the_past, new_store

LATER = (today() + timedelta(days=5)).isoformat()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A federation with a past; do not change it."""
    run = tmp_path_factory.mktemp("runs") / "clinics"
    store = eventful_store(run)
    filed_in_the_past(store, "east-1", today() - timedelta(days=3))
    return run


@pytest.fixture
def site(run: Path) -> Site:
    return Site(federations([run]), "form token")


def text(response: Response) -> str:
    """What a reader sees."""
    body = re.sub(r"<style>.*?</style>", " ", response.body.decode(), flags=re.DOTALL)
    return " ".join(entities.unescape(re.sub(r"<[^>]*>", " ", body)).split())


def page(site: Site, path: str) -> str:
    response = site.get(path)
    assert response.status == HTTPStatus.OK
    return text(response)


def test_one_federation_is_shown_at_once(site: Site) -> None:
    response = site.get("/")
    assert response.status == HTTPStatus.SEE_OTHER
    assert response.headers["Location"] == "/clinics"


def test_several_are_listed(run: Path, tmp_path: Path) -> None:
    new_store(tmp_path / "banks")
    shown = page(Site(federations([run, tmp_path / "banks"]), ""), "/")
    assert "clinics 5 0 3 1" in shown
    assert "banks 5 0 0 0" in shown


def test_the_overview_tells_what_is_in_service_and_who_takes_part(site: Site) -> None:
    shown = page(site, "/clinics")
    for fact in (
        "Model in service version 2",
        "Participants 5",
        "0 erased, 1 readmitted; 12 rounds of learning",
        "Open requests 3",
        "overdue by 3 days",
        "Receipts 4 complete and as they were signed",
        "north-0 north readmitted",
        "1-5, 7-12",
        "between 0.3 and 0.7",
    ):
        assert fact in shown, fact


def test_the_most_urgent_request_comes_first(site: Site) -> None:
    shown = page(site, "/clinics/requests")
    ids = re.findall(r"R-\d{4}", shown)
    assert ids == ["R-0005", "R-0004", "R-0002", "R-0003", "R-0001"]


def test_a_request_that_was_served_shows_its_evidence_and_receipt(site: Site) -> None:
    shown = page(site, "/clinics/requests/R-0001")
    for fact in (
        "R-0001 done",
        "why client:north-0",
        "received 20",
        "verifying 20",
        "foul with rounds=4",
        "upper end of the attack's AUC met 0.570 at most 0.700",
        "loss of accuracy on retained data met 1.0 % at most 5.0 %",
        "lower end of the attack's AUC not met not measured at least 0.300",
        "Figure Before After Verified Retrained",
        "How often the model is right on the erased data 97.0 % 52.0 % 51.0 % 50.0 %",
        "with version 1: policy met",
        "Received from participants 2.0 MB",
        "Receipt 1 (erasure",
        "Receipt 2 (verification",
        "checks out",
        "Accuracy per round of foul for R-0001.",
    ):
        assert fact in shown, fact


def test_a_request_that_failed_says_why(site: Site) -> None:
    shown = page(site, "/clinics/requests/2")
    assert "No model was retrained without the data" in shown
    assert "It failed. Upper end of the attack's AUC: 0.810." in shown
    assert "The model from before is in service." in shown
    assert "not in service" in shown


def test_a_plan_is_shown(site: Site) -> None:
    shown = page(site, "/clinics/requests/4")
    assert "foul : the first of foul, retrain" in shown
    assert "R-0005: cheaper than one by one" in shown
    assert "retrain exact 12 90.0 MB 3.0 GFLOP 6.0 s" in shown
    assert "fedrecovery no sum of contributions" in shown
    assert "last update of north-0" in shown


def test_receipts_are_listed_with_their_check(site: Site) -> None:
    shown = page(site, "/clinics/receipts")
    assert "4 receipts: every byte, every page, the order, and none is missing." in shown
    assert "4 withdrawal R-0003 The request was withdrawn." in shown
    assert "2 verification R-0001 The policy is met." in shown


def test_a_receipts_files_are_served_byte_for_byte(site: Site, run: Path) -> None:
    for name, kind in (
        ("receipt-000001.html", "text/html"),
        ("receipt-000001.json", "application/json"),
    ):
        response = site.get(f"/clinics/receipts/{name}")
        assert response.body == (run / "erasure/receipts" / name).read_bytes()
        assert response.kind.startswith(kind)


@pytest.mark.parametrize(
    "name",
    [
        "head.json",
        "..%2fledger.sqlite",
        "%2e%2e%2fkeys%2fcurrent.pem",
        "receipt-000009.json",
        ".lock",
    ],
)
def test_nothing_else_of_the_store_is_served(site: Site, name: str) -> None:
    assert site.get(f"/clinics/receipts/{name}").status == HTTPStatus.NOT_FOUND


def test_curves_and_lineage_are_shown(site: Site) -> None:
    assert "Learning" in page(site, "/clinics/curves")
    assert "Job 2" in page(site, "/clinics/curves")
    shown = page(site, "/clinics/lineage")
    assert "1 erasure (foul)" in shown
    assert "north-0 ● ◐ ●" in shown


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/clinics/requests/R-0099", "There is no request R-0099"),
        ("/clinics/requests/nine", "'nine' is no request"),
        ("/elsewhere", "There is no federation 'elsewhere' here. There is: clinics."),
        ("/clinics/keys", "There is no such page."),
        ("/a/b/c/d", "There is no such page."),
    ],
)
def test_what_is_not_there_has_a_page_that_says_so(site: Site, path: str, told: str) -> None:
    response = site.get(path)
    assert response.status == HTTPStatus.NOT_FOUND
    assert told in text(response)


def test_names_are_text_and_not_markup(site: Site) -> None:
    assert CLIENTS[-1] in page(site, "/clinics")
    for path in ("/clinics", "/clinics/requests", "/clinics/lineage"):
        assert b"<b>&amp;</b>" not in site.get(path).body
    assert b"<script" not in site.get("/clinics/%3Cscript%3E").body


def test_an_edited_receipt_is_shown_as_such(tmp_path: Path) -> None:
    store = eventful_store(tmp_path / "clinics")
    (store.receipts / "receipt-000001.html").write_text("another page")
    site = Site(federations([tmp_path / "clinics"]), "")
    for path in ("/clinics", "/clinics/receipts", "/clinics/requests/1"):
        shown = page(site, path)
        assert "receipt-000001.html is not the page that was signed" in shown
    assert "checks out" not in page(site, "/clinics/requests/1")


def test_receipts_that_were_put_back_to_an_earlier_day_are_shown_as_such(tmp_path: Path) -> None:
    store = eventful_store(tmp_path / "clinics")
    last = [body for body in store.entries() if body.kind == "issued"][-1].body
    store.append("issued", last | {"receipt": 4, "sha256": "d" * 64})
    shown = page(Site(federations([tmp_path / "clinics"]), ""), "/clinics/receipts")
    assert "receipt 4 is not the one that the ledger has noted" in shown


def test_a_store_that_breaks_while_it_is_looked_at_is_told(tmp_path: Path) -> None:
    new_store(tmp_path / "clinics")
    site = Site(federations([tmp_path / "clinics"]), "")
    for file in (tmp_path / "clinics/erasure").glob("ledger.sqlite*"):
        file.write_bytes(b"no database" * 500)
    response = site.get("/clinics")
    assert response.status == HTTPStatus.SERVICE_UNAVAILABLE
    assert "is damaged" in text(response)


def filed(site: Site, form: Mapping[str, str]) -> Response:
    return site.post("/clinics/requests", form)


def test_a_request_is_filed_from_the_page(tmp_path: Path) -> None:
    store = new_store(tmp_path / "clinics")
    site = Site(federations([tmp_path / "clinics"]), "")
    response = filed(
        site, {"whom": "client:east-0", "reason": " left ", "due": LATER, "departed": "on"}
    )
    assert response.headers["Location"] == "/clinics/requests/R-0001"
    request = store.state().requests[1]
    assert (request.text, request.reason, request.due) == ("client:east-0", "left", LATER)
    assert request.departed
    assert json.dumps(request.to_dict())


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ({"whom": "client:nobody"}, "There is no client 'nobody'"),
        ({"whom": ""}, "does not say whom to forget"),
        ({"whom": "client:east-0", "due": "2020-01-01"}, "is in the past"),
        ({"whom": "client:east-0", "due": "soon"}, "The due date is not a date."),
        ({}, "does not say whom to forget"),
    ],
)
def test_a_mistake_in_the_form_is_told_and_nothing_is_filed(
    tmp_path: Path, form: dict[str, str], told: str
) -> None:
    store = new_store(tmp_path / "clinics")
    response = filed(Site(federations([tmp_path / "clinics"]), ""), form | {"reason": "because"})
    assert response.status == HTTPStatus.UNPROCESSABLE_ENTITY
    assert told in text(response)
    # What was typed is not lost.
    assert b'value="because"' in response.body
    assert store.state().requests == {}


def test_nothing_else_can_be_sent(site: Site) -> None:
    assert site.post("/clinics/receipts", {}).status == HTTPStatus.NOT_FOUND
    assert site.post("/clinics/requests/1", {}).status == HTTPStatus.NOT_FOUND
