"""What travels through Flower: a header of JSON and tensors as bytes. No torch in here.

Tensors are safetensors bytes in one array that Flower does not look into: it cuts them into pieces
and sends a piece that it has sent before only once.
"""

from dataclasses import dataclass

from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

PROTOCOL = 1
"""Raised when nodes and servers of different foul would misunderstand each other."""
WHO = "who"
"""The task in which a node says which client it serves; all others are the worker's."""

_FORMAT = "foul.safetensors"


@dataclass(frozen=True)
class Parcel:
    """One request or reply as it travels."""

    header: bytes
    """JSON: everything but the tensors."""
    tensors: bytes = b""
    """Safetensors; empty for none."""
    envelope: bytes = b""
    """JSON: of a request, the network's make and the seconds its task may take."""

    def to_records(self) -> RecordDict:
        """As the content of a Flower message."""
        records = RecordDict(
            {"header": ConfigRecord({"header": self.header, "envelope": self.envelope})}
        )
        if self.tensors:
            array = Array("uint8", (len(self.tensors),), _FORMAT, self.tensors)
            records["tensors"] = ArrayRecord({"tensors": array})
        return records

    @classmethod
    def from_records(cls, records: RecordDict) -> "Parcel":
        """The content of a Flower message.

        Raises:
            ValueError: it is not what `to_records` makes.
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
            return cls(header, b"", envelope)
        if not isinstance(array, Array) or array.stype != _FORMAT:
            raise ValueError("its tensors are of an unknown format")
        return cls(header, array.data, envelope)
