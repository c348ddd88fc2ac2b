"""The dashboard in a real browser: both schemes, a desk and a phone, and a form that is sent."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from threading import Thread

import pytest
from report.browser import Browser, browsing, installed

from foul.erasure.clock import today
from foul.erasure.dashboard import Dashboard, open_dashboard
from foul.erasure.store import Store

from .example import CLIENTS, eventful_store, filed_in_the_past, new_store

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(installed() is None, reason="needs chromium or google-chrome on the PATH"),
]

LONG = "a-client-with-a-name-that-nobody-would-want-to-read-" * 2
PATHS = ("", "/requests", "/requests/1", "/requests/2", "/requests/4", "/receipts", "/curves")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("runs") / "clinics"
    filed_in_the_past(eventful_store(run), "east-1", today() - timedelta(days=3))
    return run


@pytest.fixture(scope="module")
def dashboard(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    other = new_store(tmp_path_factory.mktemp("runs") / "many", (LONG, "short")).folder.path
    with open_dashboard([run, other], port=0) as opened:
        thread = Thread(target=opened.serve_forever)
        thread.start()
        yield opened
        opened.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser(dashboard: Dashboard, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser that has been let in."""
    program = installed()
    assert program is not None
    with browsing(program, tmp_path_factory.mktemp("profile")) as found:
        found.open(dashboard.url, 1280, "light")
        assert found.value("document.querySelector('h1').textContent") == "Federations"
        assert found.value("location.search") == ""
        yield found


def address(dashboard: Dashboard, path: str) -> str:
    return f"http://127.0.0.1:{dashboard.server_port}{path}"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize(
    "path", [*(f"/clinics{path}" for path in PATHS), "/clinics/lineage", "/many", "/many/lineage"]
)
def test_every_page_reads_well(
    dashboard: Dashboard, browser: Browser, path: str, width: int, scheme: str
) -> None:
    browser.open(address(dashboard, path), width, scheme)
    assert browser.complaints == []
    assert browser.value("document.documentElement.scrollWidth") == width
    assert browser.value("document.querySelector('nav a[aria-current]') !== null")
    paper = browser.value("getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(252, 252, 250)" if scheme == "light" else "rgb(20, 23, 27)")


def test_a_receipt_is_read_on_the_page(dashboard: Dashboard, browser: Browser) -> None:
    browser.open(address(dashboard, "/clinics/receipts/receipt-000001.html"), 390, "dark")
    assert browser.complaints == []
    assert browser.value("document.documentElement.scrollWidth") == 390
    assert browser.value("document.querySelector('h1').textContent") == "Receipt of an erasure"


def test_a_script_could_not_run(dashboard: Dashboard, browser: Browser) -> None:
    browser.open(address(dashboard, "/clinics"), 1280, "light")
    browser.value(
        "{const s = document.createElement('script'); s.textContent = 'window.ran = 1';"
        " document.body.append(s)}; 0"
    )
    assert browser.value("window.ran === undefined")
    assert "Content Security Policy" in browser.complaints.pop()


def test_the_form_files_a_request(dashboard: Dashboard, browser: Browser, run: Path) -> None:
    browser.open(address(dashboard, "/clinics/requests"), 1280, "light")
    browser.value(f"document.querySelector('#whom').value = 'client:{CLIENTS[-1]}'; 0")
    browser.value("document.querySelector('#reason').value = 'left the study'; 0")
    browser.submit("form")
    assert browser.complaints == []
    assert browser.value("location.pathname") == "/clinics/requests/R-0006"
    assert "left the study" in browser.value("document.body.textContent")
    assert Store.read(run).state().requests[6].clients == CLIENTS[-1:]
