"""The worker of a node: lives as long as the node, so that every task finds it warm.

Flower starts a new Python process for every message. That process (`client_app`) only passes the
message on to this worker, which holds torch, the decoded images and the network.
"""

import json
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Client, Connection, wait
from pathlib import Path
from socket import AF_UNIX, socket
from types import TracebackType

import torch

from foul.client.features import FeatureStore
from foul.client.pictures import latents, reconstruct
from foul.client.worker import TASKS, Worker
from foul.config.schema import Config, ModelConfig
from foul.devices import pick_device, plan_cpu
from foul.errors import UserError
from foul.federation.codec import decode_request, decode_tensors, encode_reply, encode_tensors
from foul.federation.messages import Reply
from foul.flower.holdings import Holding
from foul.flower.parcel import WHO, Parcel, receive, send
from foul.models import DisentangledNet

LONGEST_PATH = 100
"""Bytes that a socket's path may have on Linux, nearly."""

_READING = 60.0
"""Seconds in which a message must follow its connection."""

_ASKABLE = {name: task for name, task in TASKS.items() if task not in (reconstruct, latents)}
"""What a server elsewhere may ask for: not the tasks that show single images."""

MakeWorker = Callable[[ModelConfig], Worker]


class Node:
    """Answers one message after the other on a local socket that only this user can open.

    Tasks run in a process of their own, forked when everything is loaded. One that hangs, dies or
    is no longer wanted is killed and replaced within milliseconds; nothing is loaded again.
    """

    def __init__(self, holding: Holding, path: Path, make_worker: MakeWorker) -> None:
        self._holding, self._path = holding, path
        self._make_worker = make_worker
        # Before anything else uses torch: a fork takes no threads along.
        torch.set_num_threads(1)
        self._door = listen(path)
        self._task = _TaskProcess(make_worker, self._door)

    def __enter__(self) -> "Node":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._task.end()
        self._door.close()
        self._path.unlink(missing_ok=True)

    def serve(self) -> None:
        """Answer messages until the process is stopped."""
        while True:
            with Connection(self._door.accept()[0].detach()) as asker:
                try:
                    self._answer(asker)
                except (EOFError, OSError):
                    # Whoever asked is gone, and with it the question.
                    continue

    def _answer(self, asker: Connection) -> None:
        parcel = receive(asker, _READING)
        try:
            task, deadline = _task_and_deadline(parcel)
        except (ValueError, KeyError, TypeError) as error:
            send(asker, self._failed(f"the message is garbage ({error})"))
            return
        if task == WHO:
            numbers = self._holding.facts()
            send(asker, Parcel(encode_reply(Reply(self._holding.client.id, numbers=numbers))))
            return
        began = time.perf_counter()
        reply, problem = self._perform(asker, parcel, deadline)
        if reply is None:
            self._task.end()
            self._task = _TaskProcess(self._make_worker, self._door)
            reply = self._failed(problem, time.perf_counter() - began)
        send(asker, reply)

    def _perform(
        self, asker: Connection, parcel: Parcel, deadline: float
    ) -> tuple[Parcel | None, str]:
        """What the task process answers; or nothing, and why."""
        try:
            send(self._task.pipe, parcel)
            ready = wait([self._task.pipe, asker], deadline)
            if self._task.pipe in ready:
                return receive(self._task.pipe, _READING), ""
        except (EOFError, OSError):
            return None, f"its worker process died ({self._task.ending()})"
        if ready:
            return None, "whoever asked is gone"
        return None, f"the task took longer than {deadline:g} s"

    def _failed(self, problem: str, seconds: float = 0.0) -> Parcel:
        return Parcel(encode_reply(Reply(self._holding.client.id, error=problem, seconds=seconds)))


def _task_and_deadline(parcel: Parcel) -> tuple[str, float]:
    return str(json.loads(parcel.header)["task"]), float(json.loads(parcel.envelope)["deadline"])


def worker_maker(config: Config, holding: Holding, features: Path) -> MakeWorker:
    """How the task process makes its worker for a network; it uses the device, the node never does
    (a fork does not survive that)."""

    def make(model: ModelConfig) -> Worker:
        device = pick_device(config.device)
        torch.set_num_threads(plan_cpu(1, config.threads, device).threads)
        # Its tensors come with every task.
        net = DisentangledNet(model, len(holding.classes), holding.image_size)
        return Worker([holding.client], net, device, _ASKABLE, FeatureStore(features))

    return make


class _TaskProcess:
    """A forked process that performs tasks until its pipe closes or its parent dies."""

    def __init__(self, make_worker: MakeWorker, door: socket) -> None:
        context = multiprocessing.get_context("fork")
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=_perform_tasks, args=(make_worker, theirs, self.pipe, door), daemon=True
        )
        self._process.start()
        theirs.close()

    def end(self) -> None:
        self._process.kill()
        self._process.join()
        self.pipe.close()

    def ending(self) -> str:
        self._process.join(5)
        return f"exit code {self._process.exitcode}"


def _perform_tasks(
    make_worker: MakeWorker, pipe: Connection, parents_end: Connection, door: socket
) -> None:
    # Inherited copies would keep them open after the parent's death.
    parents_end.close()
    door.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    worker: Worker | None = None
    make = ""
    try:
        while True:
            parcel = receive(pipe)
            try:
                model = json.dumps(json.loads(parcel.envelope)["model"], sort_keys=True)
                if worker is None or model != make:
                    # One live network: the one before goes.
                    worker, make = make_worker(ModelConfig.model_validate_json(model)), model
                request = decode_request(parcel.header, decode_tensors(parcel.tensors))
                reply = worker.perform(request)
            except Exception as error:
                reply = Reply(_asked(parcel), error=f"{type(error).__name__}: {error}")
            send(pipe, Parcel(encode_reply(reply), encode_tensors(reply.tensors)))
    except (EOFError, OSError):
        os._exit(0)


def _asked(parcel: Parcel) -> str:
    return str(json.loads(parcel.header).get("client", ""))


def _end_with_parent(parent: int) -> None:
    """A task whose node was killed has nobody to answer to."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(0)


def listen(path: Path) -> socket:
    """A socket that only this user can open; one that a killed node left behind is replaced.

    Raises:
        UserError: the path is too long, something else is there, or another node listens.
    """
    if len(os.fsencode(path)) > LONGEST_PATH:
        raise UserError(
            f"The socket's path {path} is longer than {LONGEST_PATH} bytes",
            "Choose a shorter --socket.",
        )
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.is_socket():
        _require_unused(path)
        path.unlink()
    elif path.exists():
        raise UserError(f"{path} is there and is no socket", "Choose another --socket.")
    door = socket(AF_UNIX)
    before = os.umask(0o177)
    try:
        door.bind(str(path))
    finally:
        os.umask(before)
    door.listen()
    return door


def _require_unused(path: Path) -> None:
    try:
        Client(str(path), "AF_UNIX").close()
    except OSError:
        return
    raise UserError(f"Another node listens at {path}", "Stop it, or choose another --socket.")
