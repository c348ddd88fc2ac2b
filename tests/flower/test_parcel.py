from multiprocessing import Pipe

import pytest

from foul.flower.parcel import Parcel, receive, send

PARCEL = Parcel(b"header", b"tensors", b"envelope")


def test_what_was_sent_arrives() -> None:
    ours, theirs = Pipe()
    with ours, theirs:
        send(ours, PARCEL)
        assert receive(theirs, 5) == PARCEL


@pytest.mark.parametrize("frames", [0, 1, 2])
def test_nobody_waits_for_the_rest_of_a_parcel_for_ever(frames: int) -> None:
    ours, theirs = Pipe()
    with ours, theirs:
        for _ in range(frames):
            ours.send_bytes(b"part")
        with pytest.raises(TimeoutError):
            receive(theirs, 0.05)
