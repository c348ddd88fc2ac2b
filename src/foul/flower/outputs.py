"""The tensors of the task `outputs`, as the server will use them: only the client knows how many
samples it has, so there is nothing that they must be like."""

import torch

from foul.federation.messages import Request, Tensors


def unfit_outputs(request: Request, tensors: Tensors) -> str:
    """Why these tensors are no answer to a request for `outputs`; empty if they are one, or if
    something else was asked."""
    if request.task != "outputs":
        return ""
    splits = request.settings["splits"]
    rows = {split: f"{split}_rows" for split in splits} if request.settings.get("rows") else {}
    for name in sorted(tensors.keys() ^ {*splits, *rows.values()}):
        return f"tensor '{name}' is {'unexpected' if name in tensors else 'missing'}"
    classes = len(request.tensors["head.weight"])
    for split in splits:
        logits = tensors[split]
        if logits.shape[1:] != (classes,) or not logits.is_floating_point():
            return f"tensor '{split}' is not a number for each of {classes} classes"
    for split, name in rows.items():
        if tensors[name].shape != tensors[split].shape[:1] or tensors[name].dtype != torch.int64:
            return f"tensor '{name}' is not a place for each sample"
    return ""
