"""How a scope reaches the clients: in full, or as a step from the one they hold.

In 8 bits steps can travel, weights cannot; so the first round's scope has 16, and every later one
is a step. What 8 bits lose is not lost for long: the server counts with what clients hold.
"""

from dataclasses import dataclass

from foul.client.compress import decode, encode
from foul.federation.messages import Tensors, added, join_groups
from foul.unlearning.foul.options import FoulOptions


@dataclass(frozen=True)
class Message:
    """A scope to start from, and what is sent for it."""

    scope: Tensors
    whole: Tensors
    step: Tensors
    """For those who hold that of the round before; empty if there is no step to send."""


def message(options: FoulOptions, scope: Tensors, step: Tensors) -> Message:
    """The scope in full, and this encoded step that leads to it."""
    whole = encode(scope, options.weights_precision)
    return Message(scope, join_groups({"scope": whole}), join_groups({"step": step}))


def message_from(options: FoulOptions, held: Tensors, wanted: Tensors) -> Message:
    """As close to the wanted scope as a step from the held one leads; without one, as 16 bits."""
    if not options.stepwise:
        return message(options, wanted, {})
    if not held:
        return message(options, decode(encode(wanted, options.weights_precision)), {})
    step = encode({name: wanted[name] - held[name] for name in wanted}, "int8")
    return message(options, added(held, decode(step)), step)
