"""Remove what an attempt made: nobody shall take its model for an accepted one."""

from foul.erasure.records import Job
from foul.runs.folder import RunFolder
from foul.runs.results import read_results, write_results
from foul.unlearning.saved import label_of


def discard(folder: RunFolder, job: Job) -> None:
    """All that a job made."""
    discard_model(folder, job.method, f"client:{','.join(job.clients)}")


def discard_model(folder: RunFolder, method: str, text: str) -> None:
    """Remove the model that a method made for a request, and all files about it."""
    label = label_of(method, text)
    for file in (
        folder.models / f"{label}.safetensors",
        folder.path / "unlearning" / f"{label}.safetensors",
        folder.evaluation / f"{label}.json",
    ):
        file.unlink(missing_ok=True)
    results = read_results(folder.results_file)
    others = [r for r in results if (r["method"], r["forget"]) != (method, text)]
    if len(others) < len(results):
        write_results(folder.results_file, others)
