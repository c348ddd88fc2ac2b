"""Parcels as the content of Flower messages. No torch in here.

Tensors are safetensors bytes in one array that Flower does not look into: it cuts them into pieces
and sends a piece that it has sent before only once.
"""

from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from foul.flower.parcel import Parcel

_FORMAT = "foul.safetensors"


def to_records(parcel: Parcel) -> RecordDict:
    """The parcel as the content of a message."""
    said = ConfigRecord({"header": parcel.header, "envelope": parcel.envelope})
    records = RecordDict({"header": said})
    if parcel.tensors:
        array = Array("uint8", (len(parcel.tensors),), _FORMAT, parcel.tensors)
        records["tensors"] = ArrayRecord({"tensors": array})
    return records


def from_records(records: RecordDict) -> Parcel:
    """The parcel in a message.

    Raises:
        ValueError: the content is not what `to_records` makes.
    """
    try:
        said = records["header"]
        header, envelope = said["header"], said["envelope"]
        array = records["tensors"]["tensors"] if "tensors" in records else None
    except (KeyError, TypeError) as error:
        raise ValueError(f"it has no {error}") from error
    if not isinstance(header, bytes) or not isinstance(envelope, bytes):
        raise ValueError("its header is not bytes")
    if array is None:
        return Parcel(header, b"", envelope)
    if not isinstance(array, Array) or array.stype != _FORMAT:
        raise ValueError("its tensors are of an unknown format")
    return Parcel(header, array.data, envelope)
