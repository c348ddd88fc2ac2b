"""FOUL: on-server gradient matching on the non-causal encoder, steered by evidence."""

from foul.unlearning.foul.method import Foul
from foul.unlearning.foul.options import FoulOptions, paper_options

__all__ = ["Foul", "FoulOptions", "paper_options"]
