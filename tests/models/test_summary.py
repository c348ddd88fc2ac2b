import pytest
from factories import MakeNet

from foul.models import DEPLOYED, summarise


def test_parts_add_up(make_net: MakeNet) -> None:
    net = make_net(adversarial=True)
    sizes = {part.part: part for part in summarise(net).parts}
    assert sum(p.parameters for p in sizes.values()) == sum(p.numel() for p in net.parameters())
    assert sum(p.bytes for p in sizes.values()) == sum(t.nbytes for t in net.state_dict().values())
    assert {name for name, part in sizes.items() if part.deployed} == set(DEPLOYED)
    # Four maps of 4x4 into three classes, and a bias.
    assert sizes["xi"].parameters == 4 * 16 * 3 + 3
    assert sizes["head"].bytes == 4 * (8 * 16 * 3 + 3)


def test_the_model_is_what_is_deployed(make_net: MakeNet) -> None:
    """Decision 24: the decoder and the adversarial head serve learning only."""
    plain, larger = (
        summarise(make_net(decoder_channels=channels, adversarial=adversarial))
        for channels, adversarial in ((8, False), (64, True))
    )
    assert plain.parameters == larger.parameters
    assert plain.model_bytes == larger.model_bytes
    assert sum(plain.share(part) for part in DEPLOYED) == pytest.approx(1)
    assert plain.share("psi") == 0


def test_as_a_dictionary(make_net: MakeNet) -> None:
    summary = summarise(make_net())
    values = summary.to_dict()
    assert values["parameters"] == summary.parameters
    assert values["bytes"] == summary.model_bytes
    assert values["share_of_v"] == summary.share("V")
    assert [part["part"] for part in values["parts"]] == ["E", "K", "V", "D", "xi", "head"]  # type: ignore[attr-defined]
