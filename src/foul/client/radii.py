"""The task `probe`: try radii, that is, how well the model would do along a line of scopes."""

from foul.client.compress import decode
from foul.client.context import TaskContext
from foul.client.scope import count_hits, held_scope, load_scope, scope_features, spread
from foul.federation.messages import Numbers, Tensors, take_group


def probe(context: TaskContext) -> tuple[Tensors, Numbers]:
    """Correct answers at `centre + point * way` for each of the named points.

    Without a centre, it is the scope that this round's training started from. At most `samples`
    training samples are asked, spread evenly over all of them.
    """
    centre = decode(take_group(context.tensors, "centre"))
    if not centre:
        centre = held_scope(context, context.round)
    way = decode(take_group(context.tensors, "way"))
    features = scope_features(context, "train")
    rows = spread(features, int(context.settings["samples"]))
    correct = []
    for point in context.settings["points"]:
        load_scope(context, {name: centre[name] + point * way[name] for name in centre})
        correct.append(count_hits(context, features, rows))
    return {}, {"samples": len(rows), "correct": correct}
