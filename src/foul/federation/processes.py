"""The engine for several cores: a few worker processes, each with one live network.

Clients side by side scale better than threads inside one small convolution: two processes of
one thread do twice the work of one, two threads in one process much less.
"""

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait

import torch

from foul.client.worker import Worker
from foul.federation.codec import (
    decode_reply,
    decode_request,
    decode_tensors,
    encode_reply,
    encode_request,
    encode_tensors,
)
from foul.federation.messages import ClientInfo, Reply, Request, Tensors


@dataclass
class _Process:
    """One worker process and the request it is busy with."""

    process: multiprocessing.process.BaseProcess
    pipe: Connection
    busy: tuple[int, str] | None = None
    """Position and client of the request."""

    def end(self) -> None:
        # Killed, not asked: it holds nothing, and processes forked after it keep its pipe open.
        self.process.kill()
        self.process.join()
        self.pipe.close()


class ProcessEngine:
    """Runs requests on forked copies of a worker; the data stays shared memory.

    The numbers do not depend on how many processes there are: a client's result depends on what
    it was sent, and replies come in the order of the requests.
    """

    def __init__(self, worker: Worker, processes: int, threads: int) -> None:
        self._worker = worker
        self._threads = threads
        self._pool = [self._start() for _ in range(processes)]

    @property
    def clients(self) -> Sequence[ClientInfo]:
        return self._worker.clients

    def run(self, requests: Iterable[Request]) -> Iterator[Reply]:
        waiting = deque(enumerate(requests))
        done: dict[int, Reply] = {}
        payload = _Payload()
        try:
            for position in range(len(waiting)):
                while position not in done:
                    # Not far ahead of the reader: replies that wait for their turn take memory.
                    ahead = position + 2 * len(self._pool)
                    for index, process in enumerate(self._pool):
                        if process.busy is None and waiting and waiting[0][0] < ahead:
                            self._give(index, *waiting.popleft(), payload)
                    self._collect(done)
                yield done.pop(position)
        finally:
            self._drop_unread()

    def close(self) -> None:
        """End the processes."""
        for process in self._pool:
            process.end()
        self._pool = []

    def _drop_unread(self) -> None:
        """Replace the processes that still work for a reader who left before the last reply."""
        for index, process in enumerate(self._pool):
            if process.busy is not None:
                process.end()
                self._pool[index] = self._start()

    def _give(self, index: int, position: int, request: Request, payload: "_Payload") -> None:
        process = self._pool[index]
        process.busy = (position, request.client)
        try:
            process.pipe.send_bytes(encode_request(request))
            process.pipe.send_bytes(payload.of(request.tensors))
        except OSError:
            # It died while idle; `_collect` sees the closed pipe and reports it.
            return

    def _collect(self, done: dict[int, Reply]) -> None:
        """Wait until at least one process has answered or died."""
        busy = {process.pipe: index for index, process in enumerate(self._pool) if process.busy}
        for pipe in wait(list(busy)):
            index = busy[pipe]  # type: ignore[index]
            process = self._pool[index]
            assert process.busy is not None
            position, client = process.busy
            try:
                header = process.pipe.recv_bytes()
                done[position] = decode_reply(header, decode_tensors(process.pipe.recv_bytes()))
                process.busy = None
            except (EOFError, OSError):
                process.process.join(5)
                code = process.process.exitcode
                done[position] = Reply(client, error=f"its worker process died (exit code {code})")
                self._pool[index] = self._start()

    def _start(self) -> _Process:
        context = multiprocessing.get_context("fork")
        ours, theirs = context.Pipe()
        process = context.Process(
            target=_serve, args=(self._worker, theirs, ours, self._threads), daemon=True
        )
        process.start()
        theirs.close()
        return _Process(process, ours)


class _Payload:
    """The encoded tensors of the requests: all clients of a round are sent the same ones."""

    def __init__(self) -> None:
        self._tensors: Tensors | None = None
        self._data = b""

    def of(self, tensors: Tensors) -> bytes:
        if tensors is not self._tensors:
            self._tensors, self._data = tensors, encode_tensors(tensors)
        return self._data


def _serve(worker: Worker, pipe: Connection, parents_end: Connection, threads: int) -> None:
    """Perform requests until the parent closes its end (or dies)."""
    # The inherited copy of the parent's end would keep the pipe open after the parent's death.
    parents_end.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    torch.set_num_threads(threads)
    try:
        while True:
            header = pipe.recv_bytes()
            reply = worker.perform(decode_request(header, decode_tensors(pipe.recv_bytes())))
            pipe.send_bytes(encode_reply(reply))
            pipe.send_bytes(encode_tensors(reply.tensors))
    except (EOFError, OSError):
        # Without the parent's exit handlers: they are the parent's.
        os._exit(0)
