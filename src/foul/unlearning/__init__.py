"""Unlearning methods: one interface, many ways to forget."""

from foul.unlearning.controls import (
    Continue,
    ContinueOptions,
    DoNothing,
    NoneOptions,
    Retrain,
    RetrainOptions,
)
from foul.unlearning.foul import Foul, FoulOptions, paper_options
from foul.unlearning.method import Case, Method, MethodState
from foul.unlearning.request import ForgetRequest
from foul.unlearning.requirements import Requirements

__all__ = [
    "Case",
    "Continue",
    "ContinueOptions",
    "DoNothing",
    "ForgetRequest",
    "Foul",
    "FoulOptions",
    "Method",
    "MethodState",
    "NoneOptions",
    "Requirements",
    "Retrain",
    "RetrainOptions",
    "paper_options",
]
