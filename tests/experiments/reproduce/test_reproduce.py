from pathlib import Path
from typing import Any

import pytest

from foul.errors import UserError
from foul.experiments.reproduce.catalogue import experiment
from foul.experiments.reproduce.colored_mnist import EXPERIMENT as COLORED
from foul.experiments.reproduce.domain_tables import APPENDIX, MAIN
from foul.experiments.reproduce.plan import Asked
from foul.experiments.reproduce.reproduce import reproduce, sources_for
from foul.experiments.reproduce.sources import Source


def test_at_smoke_size_images_are_made(tmp_path: Path) -> None:
    found = sources_for(MAIN, [], [], "smoke", tmp_path)
    assert [source.name for source in found] == ["pacs", "terra-incognita"]
    assert all(source.made for source in found)
    assert (tmp_path / "made" / "pacs" / "sketch" / "dog").is_dir()


def test_at_other_sizes_data_must_be_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"No data was named \(VLCS: "):
        sources_for(APPENDIX, [], [], "cpu", tmp_path)
    [digits] = sources_for(APPENDIX, [], ["digits"], "cpu", tmp_path)
    assert digits.name == "digits"


def test_colored_mnist_is_embedded_and_takes_the_original_files(tmp_path: Path) -> None:
    [source] = sources_for(COLORED, [], [], "cpu", tmp_path)
    assert (source.name, source.path) == ("colored-mnist", None)
    assert sources_for(COLORED, [str(tmp_path)], [], "cpu", tmp_path)[0].path == tmp_path
    with pytest.raises(UserError, match="There is no folder"):
        sources_for(COLORED, [str(tmp_path / "mnist")], [], "cpu", tmp_path)
    with pytest.raises(UserError, match="about colored-mnist alone"):
        sources_for(COLORED, [], ["digits"], "cpu", tmp_path)


@pytest.mark.parametrize(
    ("name", "asked", "what"),
    [
        ("fig-capacity", {"overrides": {"model.k_channels": 12}}, "sets model.k_channels itself"),
        ("fig-dimension", {"overrides": {"model.v_channels": 1}}, "sets model.v_channels itself"),
        ("fig-coefficients", {"overrides": {"learning.l2u.alpha_k": 0.5}}, "alpha_k itself"),
        (
            "table-colored-mnist",
            {"overrides": {"data.label_noise": 0.1}},
            "label_noise itself",
        ),
        ("fig-capacity", {"forget": ("domain:a",)}, "nothing is forgotten"),
    ],
)
def test_what_would_be_left_aside_is_refused(
    tmp_path: Path, name: str, asked: dict[str, Any], what: str
) -> None:
    source = Source("digits", None, ("plain", "textured"))
    with pytest.raises(UserError, match=what):
        reproduce(experiment(name), Asked([source], "smoke", **asked), 1, tmp_path, tmp_path)
    assert list(tmp_path.iterdir()) == []
