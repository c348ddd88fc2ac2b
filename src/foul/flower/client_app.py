"""The Flower ClientApp of a node: passes messages on to the node's worker.

Flower starts it anew for every message, so it must be light: it knows neither torch nor data.
"""

import json
from multiprocessing.connection import Client

from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from foul.flower.parcel import Parcel, receive, send
from foul.flower.wire import from_records, to_records

PATIENCE = 15.0
"""Seconds that the worker may be late: it ends a task at the task's deadline by itself."""

app = ClientApp()


@app.query()
def answer(message: Message, context: Context) -> Message:
    """The reply of the node's worker to this message."""
    client = str(context.node_config.get("client-id", ""))
    socket = str(context.node_config.get("worker-socket", ""))
    return Message(to_records(ask(client, socket, from_records(message.content))), reply_to=message)


def ask(client: str, socket: str, parcel: Parcel) -> Parcel:
    """What the worker at this socket answers; a worker that cannot be reached is an answer too."""
    if not client or not socket:
        return _failed(client, "its SuperNode has no client-id and worker-socket in --node-config")
    try:
        deadline = float(json.loads(parcel.envelope)["deadline"])
    except (ValueError, KeyError, TypeError):
        return _failed(client, "the message has no deadline")
    try:
        with Client(socket, "AF_UNIX") as worker:
            send(worker, parcel)
            return receive(worker, deadline + PATIENCE)
    except (FileNotFoundError, ConnectionRefusedError):
        return _failed(client, "its worker (`foul node`) does not run")
    except TimeoutError:
        return _failed(client, "its worker does not answer")
    except (EOFError, OSError) as error:
        return _failed(client, f"its worker broke off ({type(error).__name__})")


def _failed(client: str, problem: str) -> Parcel:
    said = {"client": client, "numbers": {}, "flops": 0, "seconds": 0.0, "error": problem}
    return Parcel(json.dumps(said).encode())
