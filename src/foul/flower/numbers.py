"""Numbers that tasks answer with, as the server will use them: what must be there, of which kind.

Counts weigh clients in averages, so they must be counts; a loss may be anything, also NaN, and who
weighs by losses must bear that.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from foul.federation.messages import Numbers, Request

Count = Annotated[int, Field(ge=0)]


class _Answer(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow")


class _Weighed(_Answer):
    counts: ClassVar[tuple[str, ...]] = ()
    """Fields that count some of the samples."""

    samples: Count

    @model_validator(mode="after")
    def _no_more_than_samples(self) -> Self:
        for name in self.counts:
            told = getattr(self, name)
            most = max(told, default=0) if isinstance(told, list) else told
            if most > self.samples:
                raise ValueError(f"{most} of {self.samples} samples")
        return self


class _Counted(_Weighed):
    counts: ClassVar[tuple[str, ...]] = ("correct",)

    correct: Count


class _Probed(_Weighed):
    counts: ClassVar[tuple[str, ...]] = ("correct",)

    correct: list[Count]


class _Score(_Counted):
    counts: ClassVar[tuple[str, ...]] = ("correct", "causal_correct")

    causal_correct: Count
    loss: float


class _Learned(_Weighed):
    validation: _Score
    losses: dict[str, float]


class _Unlearned(_Weighed):
    scores: dict[str, _Counted]
    loss: float


class _Ready(_Answer):
    ready: bool


class _Fooled(_Weighed):
    counts: ClassVar[tuple[str, ...]] = ("fooled",)

    fooled: Count


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
