"""Rounds of each kind in turn, on the same nodes; the seconds of each go to a file."""

import json
import time
from pathlib import Path

from flwr.app import Context, Message, RecordDict
from flwr.serverapp import Grid, ServerApp

from foul.config import load_config
from foul.config.schema import Config
from foul.data import load_dataset
from foul.federation.build import initial_network
from foul.federation.codec import encode_request, encode_tensors
from foul.federation.messages import Request
from foul.flower.parcel import Parcel
from foul.flower.wire import from_records, to_records

POLL = 0.2
app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    told = context.run_config
    kinds = ["empty", "warm", *(["cold"] if told["cold"] else [])]
    config = load_config(str(told["config"]))
    tensors, settings = _task(config)
    seconds: dict[str, list[float]] = {kind: [] for kind in kinds}
    for number in range(int(told["rounds"])):
        for kind in kinds:
            messages = []
            for node in grid.get_nodes():
                request = Request(node.name, "learn", number + 1, {}, settings)
                envelope = json.dumps({"model": _model(config), "deadline": 300}).encode()
                parcel = Parcel(encode_request(request), tensors, envelope)
                content = RecordDict() if kind == "empty" else to_records(parcel)
                messages.append(Message(content, node.node_id, f"query.{kind}"))
            seconds[kind].append(_round(grid, messages))
    Path(str(told["out"])).write_text(json.dumps(seconds), encoding="utf-8")


def _task(config: Config) -> tuple[bytes, dict[str, object]]:
    """One local epoch of the learning stage: the network's tensors, and the settings."""
    data = load_dataset(config.data, config.seed)
    net = initial_network(config, len(data.classes), data.image_size)
    learning = config.learning.model_dump(mode="json")
    settings = {"learning": learning, "seed": config.seed, "rate_scale": 1.0}
    return encode_tensors(dict(net.state_dict())), settings


def _model(config: Config) -> dict[str, object]:
    return config.model.model_dump(mode="json", exclude={"weights"})


def _round(grid: Grid, messages: list[Message]) -> float:
    began = time.perf_counter()
    waiting = {id for id in grid.push_messages(messages) if id}
    assert len(waiting) == len(messages)
    while waiting:
        for reply in grid.pull_messages(sorted(waiting)):
            if reply.has_error():
                raise RuntimeError(reply.error.reason)
            if "header" in reply.content:
                problem = json.loads(from_records(reply.content).header)["error"]
                if problem:
                    raise RuntimeError(problem)
            waiting.discard(reply.metadata.reply_to_message_id)
        time.sleep(POLL)
    return time.perf_counter() - began
