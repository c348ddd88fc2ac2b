import pytest

from foul.erasure.dashboard.access import Access


@pytest.fixture
def access() -> Access:
    return Access("127.0.0.1", 8420)


def test_only_the_token_is_admitted(access: Access) -> None:
    assert access.admits(access.token)
    for token in ("", access.token[:-1], access.token + "x", "ä", "\ud800"):
        assert not access.admits(token)


def test_every_server_has_secrets_of_its_own(access: Access) -> None:
    other = Access("127.0.0.1", 8420)
    own = {access.token, access.form_token, other.token, other.form_token}
    assert len(own) == 4
    assert min(map(len, own)) >= 32
    assert not other.knows(access.new_cookie())


def test_a_cookie_speaks_for_the_token(access: Access) -> None:
    value = access.new_cookie().partition(";")[0]
    assert access.knows(value)
    assert access.knows(f"theme=dark; {value}")
    assert access.token not in value
    assert "HttpOnly; SameSite=Strict" in access.new_cookie()


@pytest.mark.parametrize("cookies", ["", "foul-8420=", "foul-8420=guess", "=;,", "foul-1=x"])
def test_other_cookies_do_not(access: Access, cookies: str) -> None:
    assert not access.knows(cookies)


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8420", "localhost:8420", "[::1]:8420", "LocalHost:8420"]
)
def test_it_goes_by_the_names_of_this_machine(access: Access, host: str) -> None:
    assert access.answers_to(host)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example:8420",
        "127.0.0.1",
        "127.0.0.1:80",
        "127.0.0.1.evil.example:8420",
        "10.0.0.5:8420",
    ],
)
def test_a_name_that_was_made_to_lead_here_is_refused(access: Access, host: str) -> None:
    assert not access.answers_to(host)


def test_a_server_for_others_accepts_addresses_and_its_own_name_but_no_strangers() -> None:
    access = Access("erasures.clinic.example", 8420)
    assert access.answers_to("erasures.clinic.example:8420")
    assert access.answers_to("10.0.0.5:8420")
    assert access.answers_to("[2001:db8::1]:8420")
    assert not access.answers_to("evil.example:8420")


def test_a_form_comes_from_a_page_of_this_server(access: Access) -> None:
    own = {"Host": "127.0.0.1:8420", "Origin": "http://127.0.0.1:8420"}
    assert access.own_form(own, access.form_token)
    assert not access.own_form(own, "")
    assert not access.own_form(own, access.token)
    for origin in ("http://evil.example", "null", "https://127.0.0.1:8420", "http://127.0.0.1:1"):
        assert not access.own_form(own | {"Origin": origin}, access.form_token)
    assert not access.own_form({"Host": "127.0.0.1:8420"}, access.form_token)
