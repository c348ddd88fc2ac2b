import os

import pytest
import torch

from foul.devices import CpuPlan, pick_device, plan_cpu, usable_cores
from foul.errors import UserError

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
CPU, GPU = torch.device("cpu"), torch.device("cuda")


@pytest.fixture
def four_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1, 2, 3}, raising=False)


@pytest.mark.usefixtures("four_cores")
@pytest.mark.parametrize(
    ("workers", "threads", "device", "expected"),
    [
        (0, 0, CPU, CpuPlan(4, 1)),
        (0, 0, GPU, CpuPlan(1, 4)),
        (1, 0, CPU, CpuPlan(1, 4)),
        (2, 0, CPU, CpuPlan(2, 1)),
        (3, 0, CPU, CpuPlan(3, 1)),
        (9, 0, CPU, CpuPlan(9, 1)),
        (0, 2, CPU, CpuPlan(1, 2)),
        (0, 9, CPU, CpuPlan(1, 9)),
        (0, 1, CPU, CpuPlan(4, 1)),
    ],
)
def test_what_is_left_open_fills_the_cores(
    workers: int, threads: int, device: torch.device, expected: CpuPlan
) -> None:
    assert plan_cpu(workers, threads, device) == expected


def test_several_workers_of_several_threads_are_refused() -> None:
    with pytest.raises(UserError, match=r"workers=3 cannot have threads=2 each.*workers=1"):
        plan_cpu(3, 2, CPU)


def test_several_workers_on_a_gpu_are_refused() -> None:
    with pytest.raises(UserError, match=r"workers=2 cannot share device=cuda.*workers=1"):
        plan_cpu(2, 0, GPU)


@pytest.mark.usefixtures("four_cores")
def test_without_fork_there_is_one_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("multiprocessing.get_all_start_methods", lambda: ["spawn"])
    assert plan_cpu(0, 0, CPU) == CpuPlan(1, 4)


def test_a_system_without_affinity_uses_all_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("os.sched_getaffinity", raising=False)
    assert usable_cores() == (os.cpu_count() or 1)


def test_the_cpu_is_always_there() -> None:
    assert pick_device("cpu") == CPU


@pytest.mark.parametrize("gpu", [True, False])
def test_auto_takes_a_gpu_if_there_is_one(monkeypatch: pytest.MonkeyPatch, gpu: bool) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: gpu)
    monkeypatch.setattr("torch.cuda.device_count", lambda: int(gpu))
    assert pick_device("auto").type == ("cuda" if gpu else "cpu")


def test_a_device_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    assert pick_device("cuda:1").index == 1
    with pytest.raises(UserError, match=r"device=cuda:2 is not available.*device=cpu"):
        pick_device("cuda:2")


@pytest.mark.parametrize("wish", ["cuda", "cuda:0", "mps"])
def test_no_accelerator_is_an_error_with_a_remedy(
    monkeypatch: pytest.MonkeyPatch, wish: str
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: False)
    with pytest.raises(UserError, match=f"device={wish} is not available") as caught:
        pick_device(wish)
    assert caught.value.exit_code == 2


@needs_gpu
def test_a_gpu_computes() -> None:
    assert float(torch.ones(2, device=pick_device("auto")).sum()) == 2.0
