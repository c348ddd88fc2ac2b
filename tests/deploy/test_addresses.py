"""Hosts and ports are read as they are written, IPv6 in brackets."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foul.deploy.addresses import plain_host, split_port, with_port
from foul.errors import UserError

NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,20}(\.[a-z]{2,5})?", fullmatch=True)
HOSTS = st.one_of(NAMES, st.ip_addresses().map(str))


@given(HOSTS, st.integers(0, 65535))
def test_what_was_joined_comes_apart_again(host: str, port: int) -> None:
    text = with_port(host, port)
    assert split_port(text) == (host, port)
    assert text.startswith("[") == (":" in host)


@given(st.ip_addresses(v=6))
def test_brackets_around_an_address_are_no_part_of_it(address: ipaddress.IPv6Address) -> None:
    assert plain_host(f"[{address}]") == plain_host(str(address)) == str(address)


@pytest.mark.parametrize(
    "text",
    [
        *("fl.example.org", "https://fl.example.org:1", ":1", "a:b", "a:70000", "a:-1", "a:²"),
        *("::1:9092", "[::1]", "[::1]9092", "[]:9092", "[::1:9092", "[fl.example.org]:1"),
        *("[fe80::1%eth0]:1", "user@host:1", "a b:1", "2001:db8::7:18443"),
    ],
)
def test_what_is_not_host_and_port_is_refused(text: str) -> None:
    with pytest.raises(UserError, match=r"is not HOST:PORT.*\[2001:db8::7\]:18443"):
        split_port(text)


@pytest.mark.parametrize("text", ["", "[::1", "a:1", "[a]", "fe80::1%eth0", "a/b", "[127.0.0.1]"])
def test_what_is_no_host_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="is no host name and no address"):
        plain_host(text)
