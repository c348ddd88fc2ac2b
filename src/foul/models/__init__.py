"""Backbones and the disentangled network."""

from foul.models.backbones import BACKBONES, ResNet
from foul.models.deployed import deployed_state
from foul.models.disentangled import DEPLOYED, DisentangledNet, Gaussian, build_network, part_of
from foul.models.norms import normalised
from foul.models.summary import ModelSummary, summarise
from foul.models.weights import load_backbone

__all__ = [
    "BACKBONES",
    "DEPLOYED",
    "DisentangledNet",
    "Gaussian",
    "ModelSummary",
    "ResNet",
    "build_network",
    "deployed_state",
    "load_backbone",
    "normalised",
    "part_of",
    "summarise",
]
