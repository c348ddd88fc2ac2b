import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from foul.erasure.traces import PER_FILE, WINDOW, name_pattern, sample_windows, search
from foul.runs.checkpoint import save_tensors

ids = st.from_regex(r"[a-z]{1,4}-[0-9]{1,2}", fullmatch=True)


def random_file(path: Path, seed: int = 0) -> bytes:
    values = torch.from_numpy(np.random.default_rng(seed).normal(size=2000).astype(np.float32))
    save_tensors(path, {"w": values}, {"client": "x"})
    return path.read_bytes()


def found(path: Path, pattern: object, windows: list[bytes]) -> list[str]:
    traces, total = search([(path, path.name)], pattern, windows, lambda *_: None)  # type: ignore[arg-type]
    assert total == path.stat().st_size
    return [trace.what for trace in traces]


def test_samples_are_of_the_numbers_and_found_again(tmp_path: Path) -> None:
    content = random_file(tmp_path / "a.safetensors")
    windows = sample_windows(tmp_path / "a.safetensors", b"")
    header = 8 + int.from_bytes(content[:8], "little")
    assert len(windows) == PER_FILE
    assert all(len(w) == WINDOW and content.index(w) >= header for w in windows)
    nobody = name_pattern(["nobody"], [])
    assert found(tmp_path / "a.safetensors", nobody, windows) == ["purged bytes"]
    random_file(tmp_path / "b.safetensors", seed=1)
    assert found(tmp_path / "b.safetensors", nobody, windows) == []


def test_what_stays_in_service_is_not_sampled(tmp_path: Path) -> None:
    content = random_file(tmp_path / "a.safetensors")
    assert sample_windows(tmp_path / "a.safetensors", content) == []


@pytest.mark.parametrize("content", [b"", b"\0" * 4000, b'{"a": 1}' * 900])
def test_constants_texts_and_nothing_are_not_sampled(tmp_path: Path, content: bytes) -> None:
    for name in ("a.npy", "a.safetensors", "a.json"):
        (tmp_path / name).write_bytes(content)
    assert sample_windows(tmp_path / "a.json", b"") == []
    assert sample_windows(tmp_path / "a.npy", b"") == []


@given(st.lists(ids, min_size=2, max_size=6, unique=True), st.integers(0, 5))
def test_a_name_is_found_where_it_is_and_nowhere_else(names: list[str], place: int) -> None:
    erased = names[place % len(names)]
    others = [name for name in names if name != erased]
    pattern = name_pattern([erased], others)

    def named(text: str) -> bool:
        return any(any(match.groups()) for match in pattern.finditer(text.encode()))

    assert not named(" ".join(others))
    for text in (
        erased,
        f'{{"{erased}": 1}}',
        f"x-client-{erased}.json",
        f"{erased}-train.npy",
    ):
        assert named(text)
    assert not named(f"{erased}0")
    assert not named(f"a{erased}")


def test_names_in_numbers_are_chance_but_in_headers_and_paths_they_count(tmp_path: Path) -> None:
    pattern = name_pattern(["a-1"], ["a-10", "a-2"])
    (tmp_path / "x.npy").write_bytes(b"\0" * 200 + b" a-1 ")
    assert found(tmp_path / "x.npy", pattern, []) == []
    save_tensors(tmp_path / "y.safetensors", {"w": torch.zeros(3)}, {"client": "a-1"})
    assert found(tmp_path / "y.safetensors", pattern, []) == ["the name of an erased client"]
    (tmp_path / "a-1.txt").write_text("a-10 a-2")
    assert found(tmp_path / "a-1.txt", pattern, []) == ["its name"]


def test_a_name_is_found_as_json_escapes_it() -> None:
    pattern = name_pattern(["köln-1"], ["köln-10", "bonn-0"])
    for text in (json.dumps({"köln-1": 1}), json.dumps({"köln-1": 1}, ensure_ascii=False)):
        assert [any(match.groups()) for match in pattern.finditer(text.encode())] == [True]
    assert not any(any(m.groups()) for m in pattern.finditer(json.dumps(["köln-10"]).encode()))
