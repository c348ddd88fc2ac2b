"""The losses of the learning stage: pure functions of tensors."""

from foul.learning.losses.causal import prototype_loss
from foul.learning.losses.classification import classification_loss, fooling_loss
from foul.learning.losses.noncausal import variance_loss
from foul.learning.losses.reconstruction import kl_to_standard_normal, reconstruction_loss
from foul.learning.losses.unlearning import (
    bounded_unlearning_loss,
    levelling_loss,
    margins,
    weakest_loss,
)

__all__ = [
    "bounded_unlearning_loss",
    "classification_loss",
    "fooling_loss",
    "kl_to_standard_normal",
    "levelling_loss",
    "margins",
    "prototype_loss",
    "reconstruction_loss",
    "variance_loss",
    "weakest_loss",
]
