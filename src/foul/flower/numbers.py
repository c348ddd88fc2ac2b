"""Numbers that tasks answer with, as the server will use them: what must be there, of which kind.

Counts weigh clients in averages, so they must be counts; a loss may be anything, also NaN, and who
weighs by losses must bear that.
"""

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from foul.federation.messages import Numbers, Request

Count = Annotated[int, Field(ge=0)]


class _Answer(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow")


class _Weighed(_Answer):
    samples: Count


_W = TypeVar("_W", bound=_Weighed)


def _at_most(answer: _W, *counts: int) -> _W:
    """The answer, if none of these counts is larger than its samples."""
    if max(counts, default=0) > answer.samples:
        raise ValueError(f"{max(counts)} of {answer.samples} samples")
    return answer


class _Counted(_Weighed):
    correct: Count

    @model_validator(mode="after")
    def _no_more_than_samples(self) -> "_Counted":
        return _at_most(self, self.correct)


class _Probed(_Weighed):
    correct: list[Count]

    @model_validator(mode="after")
    def _no_more_than_samples(self) -> "_Probed":
        return _at_most(self, *self.correct)


class _Score(_Counted):
    causal_correct: Count
    loss: float

    @model_validator(mode="after")
    def _no_more_than_samples(self) -> "_Score":
        return _at_most(self, self.correct, self.causal_correct)


class _Learned(_Weighed):
    validation: _Score
    losses: dict[str, float]


class _Unlearned(_Weighed):
    scores: dict[str, _Counted]
    loss: float


class _Ready(_Answer):
    ready: bool


class _Fooled(_Weighed):
    fooled: Count

    @model_validator(mode="after")
    def _no_more_than_samples(self) -> "_Fooled":
        return _at_most(self, self.fooled)


class _Angle(_Answer):
    cosine: float | None


class _Divergence(_Weighed):
    kl: float


_KINDS: Mapping[str, TypeAdapter[Any]] = {
    task: TypeAdapter(kind)
    for task, kind in {
        "learn": _Learned,
        "evaluate": dict[str, _Score],
        "freeze": _Ready,
        "keep": _Ready,
        "unlearn": _Unlearned,
        "train": _Weighed,
        "survey": _Weighed,
        "adapt": _Weighed,
        "channels": _Weighed,
        "moments": _Weighed,
        "probe": _Probed,
        "probed": _Counted,
        "triggered": _Fooled,
        "angle": _Angle,
        "divergence": dict[str, _Divergence],
    }.items()
}


def unfit(request: Request, numbers: Numbers) -> str:
    """Why these numbers are no answer to this request; empty if they are one."""
    if request.task not in _KINDS:
        return ""
    try:
        _KINDS[request.task].validate_python(numbers)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        return f"its number {'.'.join(map(str, first['loc']))} cannot be used ({first['msg']})"
    told = {"evaluate": numbers, "divergence": numbers, "unlearn": numbers.get("scores", {})}
    for split in request.settings["splits"] if request.task in told else ():
        if split not in told[request.task]:
            return f"it says nothing of the split '{split}'"
    if request.task == "probe" and len(numbers["correct"]) != len(request.settings["points"]):
        return f"it answers for {len(numbers['correct'])} points"
    return ""
