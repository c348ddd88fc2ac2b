import http.client
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import NamedTuple
from urllib.parse import urlencode

import pytest

from foul.erasure.dashboard import Dashboard, open_dashboard
from foul.erasure.store import Store
from foul.errors import UserError

from .example import new_store


class Answer(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: str


@pytest.fixture
def run(tmp_path: Path) -> Path:
    new_store(tmp_path / "clinics")
    return tmp_path / "clinics"


@pytest.fixture
def dashboard(run: Path) -> Iterator[Dashboard]:
    with open_dashboard([run], port=0) as opened:
        thread = Thread(target=opened.serve_forever, args=(0.01,))
        thread.start()
        yield opened
        opened.shutdown()
        thread.join()


def ask(
    dashboard: Dashboard, path: str, verb: str = "GET", body: str = "", **headers: str
) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", dashboard.server_port, timeout=10)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(verb, path, body or None, named)
    response = connection.getresponse()
    answer = Answer(response.status, response.headers, response.read().decode())
    connection.close()
    return answer


def cookie(dashboard: Dashboard) -> str:
    entered = ask(dashboard, f"/clinics?token={dashboard.access.token}")
    return entered.headers["Set-Cookie"].partition(";")[0]


def test_without_the_token_nothing_is_shown(dashboard: Dashboard) -> None:
    for path in ("/", "/clinics", "/clinics?token=guess", "/clinics/receipts", "/nowhere"):
        answer = ask(dashboard, path)
        assert answer.status == 401
        assert "north-0" not in answer.body
        assert "Set-Cookie" not in answer.headers


def test_the_token_is_in_the_address_once(dashboard: Dashboard) -> None:
    entered = ask(dashboard, dashboard.url.partition(str(dashboard.server_port))[2])
    assert entered.status == 303
    assert entered.headers["Location"] == "/"
    assert dashboard.access.token not in str(entered.headers)
    page = ask(dashboard, "/clinics", Cookie=cookie(dashboard))
    assert page.status == 200
    assert "north-0" in page.body
    assert dashboard.access.token not in page.body


@pytest.mark.parametrize("path", ["//evil.example/x", "/\\evil.example", "///evil.example"])
def test_entering_never_leads_elsewhere(dashboard: Dashboard, path: str) -> None:
    entered = ask(dashboard, f"{path}?token={dashboard.access.token}")
    assert re.match(r"/[^/\\]", entered.headers["Location"])


def test_a_strangers_name_for_this_machine_is_refused(dashboard: Dashboard) -> None:
    known = cookie(dashboard)
    answer = ask(dashboard, "/clinics", Cookie=known, Host=f"evil.example:{dashboard.server_port}")
    assert answer.status == 421
    assert "north-0" not in answer.body


def test_pages_may_load_nothing_and_are_not_kept(dashboard: Dashboard) -> None:
    headers = ask(dashboard, "/clinics", Cookie=cookie(dashboard)).headers
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")
    assert "script-src" not in policy
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "same-origin"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "Python" not in headers["Server"]


def post(dashboard: Dashboard, **changed: str) -> Answer:
    """A form as a browser sends it, but for what is changed."""
    own = {
        "Cookie": cookie(dashboard),
        "Origin": f"http://127.0.0.1:{dashboard.server_port}",
        "Content_Type": "application/x-www-form-urlencoded",
    }
    token = changed.pop("form_token", dashboard.access.form_token)
    form = urlencode({"form_token": token, "whom": "client:east-0"})
    return ask(dashboard, "/clinics/requests", "POST", form, **(own | changed))


def test_a_request_is_filed_with_everything_in_order(dashboard: Dashboard, run: Path) -> None:
    answer = post(dashboard)
    assert answer.status == 303
    assert answer.headers["Location"] == "/clinics/requests/R-0001"
    assert Store.read(run).state().requests[1].text == "client:east-0"


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"Cookie": "foul-1=x"}, 401),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"form_token": "guess"}, 403),
        ({"Host": "evil.example"}, 421),
        ({"Content_Length": "999999999"}, 413),
        ({"Content_Length": "many"}, 413),
    ],
)
def test_a_form_from_elsewhere_files_nothing(
    dashboard: Dashboard, run: Path, changed: dict[str, str], status: int
) -> None:
    assert post(dashboard, **changed).status == status
    assert Store.read(run).state().requests == {}


def test_the_form_on_the_page_holds_what_it_needs(dashboard: Dashboard) -> None:
    page = ask(dashboard, "/clinics/requests", Cookie=cookie(dashboard)).body
    assert f'name="form_token" value="{dashboard.access.form_token}"' in page


def test_head_sends_no_body_and_other_verbs_are_unknown(dashboard: Dashboard) -> None:
    head = ask(dashboard, "/clinics", "HEAD", Cookie=cookie(dashboard))
    assert head.status == 200
    assert head.body == ""
    assert int(head.headers["Content-Length"]) > 1000
    assert ask(dashboard, "/clinics", "DELETE").status == 501


def test_nothing_is_logged(dashboard: Dashboard, capfd: pytest.CaptureFixture[str]) -> None:
    cookie(dashboard)
    ask(dashboard, "/clinics?token=guess")
    assert capfd.readouterr() == ("", "")


def test_a_page_that_fails_is_told_without_its_innards(
    dashboard: Dashboard, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def broken(path: str) -> None:
        raise RuntimeError("secret innards")

    monkeypatch.setattr(dashboard.site, "get", broken)
    answer = ask(dashboard, "/clinics", Cookie=cookie(dashboard))
    assert answer.status == 500
    assert "innards" not in answer.body
    assert "RuntimeError: secret innards" in capfd.readouterr().err


def test_a_port_that_is_taken_is_named_with_one_that_is_free(run: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(UserError, match=rf"Port {port} is taken .* Try --port \d+\."):
            open_dashboard([run], port=port)


def test_other_machines_are_let_in_only_if_asked(run: Path) -> None:
    with pytest.raises(
        UserError, match=r"At 0\.0\.0\.0 other machines could reach .*--allow-remote"
    ):
        open_dashboard([run], host="0.0.0.0", port=0)
    with open_dashboard([run], host="0.0.0.0", port=0, remote=True) as opened:
        assert not opened.access.local


def test_an_address_that_is_not_here_is_named(run: Path) -> None:
    with pytest.raises(UserError, match=r"Cannot listen at 192\.0\.2\.1"):
        open_dashboard([run], host="192.0.2.1", port=0, remote=True)


def test_a_store_that_is_missing_is_named_before_anything_is_opened(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not a run folder"):
        open_dashboard([tmp_path / "nothing"], port=0)
