"""Numbers that tasks answer with, as the server will use them: what must be there, of which kind.

Counts weigh clients in averages, so they must be counts; a loss may be anything, also NaN, and who
weighs by losses must bear that.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from foul.federation.messages import Numbers, Request

Count = Annotated[int, Field(ge=0)]


class _Answer(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow")


class _Weighed(_Answer):
    samples: Count


class _Counted(_Weighed):
    correct: Count


class _Probed(_Weighed):
    correct: list[Count]


class _Score(_Counted):
    causal_correct: Count
    loss: float


class _Learned(_Weighed):
    validation: _Score
    losses: dict[str, float]


class _Unlearned(_Weighed):
    scores: dict[str, Any]
    loss: float


class _Ready(_Answer):
    ready: bool


class _Fooled(_Weighed):
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
    if request.task in ("evaluate", "divergence"):
        for split in request.settings["splits"]:
            if split not in numbers:
                return f"it says nothing of the split '{split}'"
    if request.task == "probe" and len(numbers["correct"]) != len(request.settings["points"]):
        return f"it answers for {len(numbers['correct'])} points"
    return ""
