from pathlib import Path

import PIL.Image
import pytest
import torch
from small_runs import small_config

from foul import RunFolder, UserError, export, learn, load_dataset, load_deployed
from foul.data import DomainSet
from foul.data.batches import to_float
from foul.federation.build import initial_network
from foul.runs.checkpoint import load_tensors, save_tensors


@pytest.fixture(scope="module", params=["joint", "causal"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    config = small_config(model__head=request.param, learning__rounds=2)
    return learn(config, tmp_path_factory.mktemp("export") / "run")


@pytest.fixture(scope="module")
def exported(run: RunFolder) -> Path:
    export(run.path, run.path / "export")
    return run.path / "export"


@pytest.fixture(scope="module")
def data() -> DomainSet:
    return load_dataset(small_config().data, 0)


def pixels(count: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(count)
    return torch.randint(0, 256, (count, 3, 16, 16), dtype=torch.uint8, generator=generator)


def expected_logits(run: RunFolder, images: torch.Tensor) -> torch.Tensor:
    """What the network that was trained says, with the clients' own normalisation."""
    config = run.config()
    net = initial_network(config, 3, 16).eval()
    net.load_state_dict(run.load_model()[0])
    with torch.inference_mode():
        features = net.E(to_float(images))
        z_k = net.K(features)
        if config.model.head == "causal":
            return net.causal_logits(z_k)
        return net.joint_logits(z_k, net.V(features))


@pytest.mark.parametrize("count", [1, 2, 3, 17])
def test_the_program_gives_the_networks_logits(run: RunFolder, exported: Path, count: int) -> None:
    images = pixels(count)
    program = torch.export.load(exported / "model.pt2").module()
    with torch.inference_mode():
        logits = program(images)
    torch.testing.assert_close(logits, expected_logits(run, images), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("count", [1, 5])
def test_the_weights_give_the_networks_logits(run: RunFolder, exported: Path, count: int) -> None:
    images = pixels(count)
    for path in (run.path, exported):
        with torch.inference_mode():
            logits = load_deployed(path).net(images)
        torch.testing.assert_close(logits, expected_logits(run, images), rtol=1e-4, atol=1e-5)


def test_only_what_is_deployed_is_written(run: RunFolder, exported: Path) -> None:
    tensors, state = load_tensors(exported / "model.safetensors")
    model = run.load_model()[0]
    assert state == {"model": "learned"}
    assert {name.split(".")[0] for name in tensors} == {"E", "K", "V", "xi", "head"}
    assert all(tensor.equal(model[name]) for name, tensor in tensors.items())
    assert sorted(file.name for file in exported.iterdir()) == [
        "model.json",
        "model.pt2",
        "model.safetensors",
    ]


def test_predictions_are_the_accuracy_that_clients_report(
    run: RunFolder, data: DomainSet, tmp_path: Path
) -> None:
    deployed = load_deployed(run.path)
    domain = data.domains[0]
    images, labels = domain.test.batch(torch.arange(len(domain.test)))
    paths = []
    for number, image in enumerate(images.permute(0, 2, 3, 1).contiguous()):
        paths.append(tmp_path / f"{number}.png")
        PIL.Image.fromarray(image.numpy()).save(paths[-1])
    predictions = deployed.predict(paths)
    right = sum(
        deployed.classes.index(p.label) == int(label)
        for p, label in zip(predictions, labels, strict=True)
    )
    told = run.summary()["accuracy"]["test"]["domains"][domain.name]
    assert right / len(labels) == pytest.approx(told["accuracy"])


def test_images_of_any_size_and_mode_are_taken(run: RunFolder, tmp_path: Path) -> None:
    paths = []
    for mode, size in (("L", (5, 90)), ("RGBA", (16, 16)), ("P", (200, 20)), ("1", (16, 16))):
        paths.append(tmp_path / f"{mode}.png")
        PIL.Image.new(mode, size).save(paths[-1])
    predictions = load_deployed(run.path).predict(paths)
    assert [prediction.image for prediction in predictions] == [str(path) for path in paths]


def test_a_failing_export_leaves_nothing_half_written(
    run: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no program")

    monkeypatch.setattr(torch.export, "save", fail)
    with pytest.raises(RuntimeError, match="no program"):
        export(run.path, tmp_path / "out")
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["model.safetensors"]


def test_weights_of_another_network_are_refused(exported: Path, tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text((exported / "model.json").read_text())
    tensors, state = load_tensors(exported / "model.safetensors")
    del tensors["head.bias"]
    save_tensors(tmp_path / "model.safetensors", tensors, state)
    with pytest.raises(UserError, match=r"does not fit its description.*head\.bias"):
        load_deployed(tmp_path)
