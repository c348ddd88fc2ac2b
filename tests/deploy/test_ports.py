"""Free ports, and clear words about those that are not."""

import socket

import pytest

from foul.deploy.ports import free_ports, ports_from, require_free
from foul.errors import UserError


def test_free_ports_differ_and_can_be_used() -> None:
    ports = free_ports(8)
    assert len(set(ports)) == 8
    for port in ports:
        require_free(port)


def test_a_taken_port_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=rf"Port {port} of 127\.0\.0\.1.*another --port"):
            ports_from(port, ["127.0.0.1"])
        # Also if it is not the first one.
        with pytest.raises(UserError, match=f"Port {port} "):
            ports_from(port - 1, ["127.0.0.1", "127.0.0.1"])


def test_ports_follow_each_other_or_are_any() -> None:
    assert len(set(ports_from(0, ["127.0.0.1"] * 3))) == 3
    (first,) = free_ports(1)
    assert ports_from(first, ["127.0.0.1"]) == [first]


@pytest.mark.parametrize(("host", "port"), [("192.0.2.1", 20000), ("127.0.0.1", 70000)])
def test_what_is_no_port_of_this_machine_is_refused(host: str, port: int) -> None:
    with pytest.raises(UserError, match="cannot be used"):
        require_free(port, host)
