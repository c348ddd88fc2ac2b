"""Three ways to answer a message: with nothing, by the warm worker, by loading everything."""

from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp

from foul.flower.client_app import ask
from foul.flower.parcel import Parcel
from foul.flower.wire import from_records, to_records

app = ClientApp()


@app.query("empty")
def empty(message: Message, context: Context) -> Message:
    return Message(RecordDict(), reply_to=message)


@app.query("warm")
def warm(message: Message, context: Context) -> Message:
    config = context.node_config
    client, socket = str(config["client-id"]), str(config["worker-socket"])
    return Message(to_records(ask(client, socket, from_records(message.content))), reply_to=message)


@app.query("cold")
def cold(message: Message, context: Context) -> Message:
    """What a ClientApp without a worker has to do for every message."""
    import json
    import tempfile
    from pathlib import Path

    from foul.config import load_config
    from foul.config.schema import ModelConfig
    from foul.federation.codec import decode_request, decode_tensors, encode_reply, encode_tensors
    from foul.flower.holdings import share_of
    from foul.flower.node import worker_maker

    parcel = from_records(message.content)
    config = load_config(str(context.run_config["config"]), ["threads=1"])
    holding = share_of(config, str(context.node_config["client-id"]))
    model = ModelConfig.model_validate(json.loads(parcel.envelope)["model"])
    with tempfile.TemporaryDirectory() as features:
        worker = worker_maker(config, holding, Path(features))(model)
        request = decode_request(parcel.header, decode_tensors(parcel.tensors))
        reply = worker.perform(request)
    answer = Parcel(encode_reply(reply), encode_tensors(reply.tensors))
    return Message(to_records(answer), reply_to=message)
