"""Tests of the Flower engine; without Flower they are left out."""

import pytest

pytest.importorskip("flwr", reason="needs Flower: pip install 'foul[flower]'")

from flwr.supercore.task_identity import TaskIdentity


@pytest.fixture(autouse=True)
def _in_a_run() -> None:
    """Messages can only be made inside a Flower run."""
    TaskIdentity.run_id, TaskIdentity.task_id, TaskIdentity.node_id = 1, 1, 1
