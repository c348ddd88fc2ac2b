import pytest
import torch
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, RecordDict
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects
from hypothesis import given
from hypothesis import strategies as st

from foul.federation.codec import decode_tensors, encode_tensors
from foul.flower.parcel import Parcel
from foul.flower.wire import from_records, to_records


@given(header=st.binary(), tensors=st.binary(), envelope=st.binary())
def test_a_parcel_comes_out_as_it_went_in(header: bytes, tensors: bytes, envelope: bytes) -> None:
    parcel = Parcel(header, tensors, envelope)
    assert from_records(to_records(parcel)) == parcel


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8, torch.int64])
def test_tensors_of_every_type_travel(dtype: torch.dtype) -> None:
    sent = {"x": torch.arange(12).reshape(3, 4).to(dtype)}
    parcel = from_records(to_records(Parcel(b"", encode_tensors(sent))))
    assert decode_tensors(parcel.tensors)["x"].equal(sent["x"])


def test_eleven_million_parameters_travel_with_less_than_one_percent_around_them() -> None:
    sent = {f"layer.{number}": torch.zeros(100_000) + number for number in range(110)}
    message = Message(to_records(Parcel(b"{}", encode_tensors(sent))), 1, "query")
    pieces = get_all_nested_objects(message).values()
    size = sum(tensor.nbytes for tensor in sent.values())
    assert sum(len(piece.deflate()) for piece in pieces) < 1.01 * size


@pytest.mark.parametrize(
    "records",
    [
        RecordDict(),
        RecordDict({"header": ConfigRecord({"header": b""})}),
        RecordDict({"header": ConfigRecord({"header": "text", "envelope": b""})}),
        RecordDict({"header": ArrayRecord()}),
        RecordDict(
            {
                "header": ConfigRecord({"header": b"", "envelope": b""}),
                "tensors": ArrayRecord({"tensors": Array("float32", (1,), "numpy", b"")}),
            }
        ),
    ],
)
def test_other_records_are_refused(records: RecordDict) -> None:
    with pytest.raises(ValueError, match="it"):
        from_records(records)
