"""Optional TensorBoard events beside the run's own records."""

from pathlib import Path
from typing import Any

from foul.errors import UserError
from foul.federation.observer import Observer


def tensorboard_observer(run: Path) -> Observer:
    """An observer that writes scalars to `RUN/tensorboard`.

    Raises:
        UserError: TensorBoard is not installed.
    """
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise UserError(
            "tensorboard=true needs TensorBoard", "pip install 'foul[tensorboard]'."
        ) from None

    class TensorBoard(Observer):
        # Opened with the first round, when the run folder exists.
        writer: SummaryWriter | None = None

        def on_round(self, record: dict[str, Any]) -> None:
            if self.writer is None:
                self.writer = SummaryWriter(str(run / "tensorboard"))
            step = record["round"]
            if record["validation_accuracy"] is not None:
                self.writer.add_scalar("validation_accuracy", record["validation_accuracy"], step)
            for name, value in record["losses"].items():
                self.writer.add_scalar(f"loss/{name}", value, step)
            self.writer.flush()

    return TensorBoard()
