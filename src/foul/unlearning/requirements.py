"""What a method needs, as data: checked before the first round, shown before a choice."""

from dataclasses import asdict, dataclass
from typing import Any

from foul.errors import UserError


@dataclass(frozen=True)
class Requirements:
    """Needs of an unlearning method."""

    forget_online: bool = False
    """Forget clients must take part."""
    individual_updates: bool = False
    """The server sees each client's update (so no secure aggregation of single clients)."""
    stored_deltas: bool = False
    """The run kept the forget clients' last updates (federation.keep_deltas)."""
    history: bool = False
    """The run added up what each group of clients contributed (federation.history)."""
    own_learning: bool = False
    """It learns in a way of its own: that stage is run first, for as many rounds."""
    l2u: bool = False
    """The model must have been trained by learning to unlearn, with the joint head."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def check(method: str, needs: Requirements, objective: str, head: str, others: list[str]) -> None:
    """Refuse a model that this method cannot work on, and say which methods can.

    Raises:
        UserError: the model was not trained as the method needs it.
    """
    if not needs.l2u:
        return
    usable = f"Methods that work on this model: {', '.join(others)}."
    if objective != "l2u":
        raise UserError(f"'{method}' needs a model trained with learning.objective=l2u", usable)
    if head != "joint":
        raise UserError(
            f"'{method}' cannot change a prediction of model.head={head}, which does not read V",
            usable,
        )
