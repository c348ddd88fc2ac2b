import pytest
import torch
from factories import MakeNet
from torch import Tensor

from foul.config.schema import ModelConfig
from foul.models import DEPLOYED, Gaussian, build_network, part_of, summarise
from foul.models.backbones import NORMS
from foul.models.disentangled import PARTS, Decoder


def images(count: int = 4, size: int = 16) -> Tensor:
    return torch.randn(count, 3, size, size, generator=torch.Generator().manual_seed(0))


def shake(module: torch.nn.Module) -> None:
    """Change every parameter and buffer."""
    with torch.no_grad():
        for tensor in module.state_dict().values():
            tensor.add_(1)


def test_v_is_at_most_the_papers_share_of_resnet18() -> None:
    """16.02 of 42.73 MB (decision 20)."""
    config = ModelConfig(backbone="resnet18", split=2, k_width=1.0, v_width=0.75)
    with torch.device("cpu"):
        net = build_network(config, classes=7, image_size=64, seed=0)
    assert 0.3 < summarise(net).share("V") <= 16.02 / 42.73


@pytest.mark.parametrize("training", [True, False])
def test_under_the_causal_head_v_is_never_heard(make_net: MakeNet, training: bool) -> None:
    """Decision 1: then unlearning in V cannot change a prediction."""
    net = make_net(head="causal").train(training)
    with torch.no_grad():
        before = net(images())
        shake(net.V)
        assert net(images()).equal(before)
        shake(net.K)
        assert not net(images()).equal(before)


@pytest.mark.parametrize("part", ["E", "K", "V", "head"])
def test_the_joint_head_hears_both(make_net: MakeNet, part: str) -> None:
    net = make_net().eval()
    with torch.no_grad():
        before = net(images())
        shake(net.parts()[part])
        assert (net(images()) != before).all()


@pytest.mark.parametrize("part", ["D", "xi"])
def test_what_only_learning_needs_changes_no_prediction(make_net: MakeNet, part: str) -> None:
    net = make_net().eval()
    with torch.no_grad():
        before = net(images())
        shake(net.parts()[part])
        assert net(images()).equal(before)


@pytest.mark.parametrize("size", [16, 28, 32, 64])
@pytest.mark.parametrize("backbone", ["tiny", "small", "resnet18"])
def test_images_come_back_in_their_size(backbone: str, size: int) -> None:
    config = ModelConfig.model_validate({"backbone": backbone, "width": 0.25})
    net = build_network(config, 3, size, seed=0).eval()
    with torch.no_grad():
        features = net.E(images(2, size))
        z_k, z_v = net.K(features), net.V(features)
        drawn = net.reconstruct(z_k, z_v)
        extreme = net.reconstruct(1e4 * z_k, 1e4 * z_v)
    assert drawn.shape == (2, 3, size, size)
    assert z_k.shape[2:] == z_v.shape[2:]
    assert z_k.shape[2] <= config.latent_size
    for image in (drawn, extreme):
        assert (image >= 0).all()
        assert (image <= 1).all()


@pytest.mark.parametrize(("latent", "size"), [(1, 9), (3, 28), (4, 4)])
def test_the_decoder_fits_any_size(latent: int, size: int) -> None:
    decoder = Decoder(2, latent, size, 8, NORMS["group"])
    assert decoder(torch.rand(1, 2, latent, latent)).shape == (1, 3, size, size)


@pytest.mark.parametrize("largest", [1, 2, 4, 100])
def test_the_latent_size_is_a_limit(make_net: MakeNet, largest: int) -> None:
    net = make_net(latent_size=largest)
    z = net.K(net.E(images()))
    assert z.shape == (4, 4, min(largest, 4), min(largest, 4))
    assert net(images()).shape == (4, 3)


def test_the_same_seed_gives_the_same_bits(make_net: MakeNet) -> None:
    first, again, other = (make_net(seed=seed).state_dict() for seed in (3, 3, 4))
    assert all(first[name].equal(again[name]) for name in first)
    assert not first["K.mean.weight"].equal(other["K.mean.weight"])


def test_the_seed_alone_decides(make_net: MakeNet) -> None:
    torch.manual_seed(1)
    first = make_net().state_dict()
    torch.manual_seed(2)
    second = make_net().state_dict()
    assert all(first[name].equal(second[name]) for name in first)


@pytest.mark.parametrize("change", [{"v_width": 2.0}, {"v_channels": 9}, {"adversarial": True}])
def test_a_wider_v_does_not_change_how_others_start(
    make_net: MakeNet, change: dict[str, object]
) -> None:
    plain, wide = make_net().state_dict(), make_net(**change).state_dict()
    for name, tensor in plain.items():
        if part_of(name) in ("E", "K", "xi"):
            assert wide[name].equal(tensor), name
    assert any(name not in plain or wide[name].shape != plain[name].shape for name in wide)


@pytest.mark.parametrize("adversarial", [True, False])
def test_parts_hold_every_tensor_once(make_net: MakeNet, adversarial: bool) -> None:
    net = make_net(adversarial=adversarial)
    expected = PARTS if adversarial else PARTS[:-1]
    assert tuple(net.parts()) == expected
    names = [f"{part}.{name}" for part in expected for name in net.parts()[part].state_dict()]
    assert names == list(net.state_dict())


def test_the_state_of_parts_is_live_and_complete(make_net: MakeNet) -> None:
    net = make_net()
    state = net.part_state(("K", "xi"))
    assert {part_of(name) for name in state} == {"K", "xi"}
    assert set(net.part_state(PARTS)) == set(net.state_dict())
    assert {part_of(name) for name in net.part_state(DEPLOYED)} == set(DEPLOYED)
    state["xi.bias"].fill_(7.0)
    assert (net.xi.bias == 7).all()


def test_samples_have_the_mean_and_deviation_of_the_latents() -> None:
    mean, deviation = torch.tensor([2.0, -1.0]), torch.tensor([0.5, 3.0])
    latent = Gaussian(mean.expand(20_000, 2), (2 * deviation.log()).expand(20_000, 2))
    drawn = latent.sample(torch.Generator().manual_seed(0))
    torch.testing.assert_close(drawn.mean(0), mean, atol=0.1, rtol=0)
    torch.testing.assert_close(drawn.std(0), deviation, atol=0, rtol=0.03)
    assert drawn.equal(latent.sample(torch.Generator().manual_seed(0)))


def test_samples_pass_gradients_to_mean_and_variance() -> None:
    mean, logvar = (torch.zeros(5, requires_grad=True) for _ in range(2))
    z = Gaussian(mean, logvar).sample(torch.Generator().manual_seed(0))
    by_mean, by_logvar = torch.autograd.grad(z.sum(), (mean, logvar))
    assert by_mean.equal(torch.ones(5))
    torch.testing.assert_close(by_logvar, 0.5 * z.detach())


def test_an_encoders_answer_is_the_mean_of_its_distribution(make_net: MakeNet) -> None:
    net = make_net().eval()
    with torch.no_grad():
        features = net.E(images())
        assert net.V(features).equal(net.V.distribution(features).mean)
        assert net.V.distribution(1e6 * features).logvar.abs().max() <= 8


def test_group_normalisation_has_no_buffers(make_net: MakeNet) -> None:
    assert not list(make_net(norm="group").buffers())
    assert list(make_net(norm="batch").buffers())
