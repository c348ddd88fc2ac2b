"""Domains, clients and batches."""

from foul.data.augment import augment
from foul.data.batches import ordered_batches, shuffled_batches, to_float, to_unit
from foul.data.check import Report, check
from foul.data.clients import ClientData, build_clients
from foul.data.domains import Domain, DomainSet, Samples
from foul.data.known import KnownSet, known, known_sets
from foul.data.load import load_dataset

__all__ = [
    "ClientData",
    "Domain",
    "DomainSet",
    "KnownSet",
    "Report",
    "Samples",
    "augment",
    "build_clients",
    "check",
    "known",
    "known_sets",
    "load_dataset",
    "ordered_batches",
    "shuffled_batches",
    "to_float",
    "to_unit",
]
