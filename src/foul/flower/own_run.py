"""The Flower run that this process serves."""

from foul.flower.connect import is_serving


def own_run() -> int | None:
    """Its number, if this is the inside of a ServerApp."""
    if not is_serving():
        return None
    from flwr.supercore.task_identity import TaskIdentity

    return int(TaskIdentity.run_id)
