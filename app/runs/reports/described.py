"""What a run trains, as the list of runs has it. No Gradio, no PyTorch in it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from app.runs.names import ELSEWHERE
from app.serving.names import FOLDER_PREFIX, HUB_PREFIX, RUN_PREFIX
from core_models import InputError
from core_models.families import size


def describe_model(config: dict[str, Any], named: Callable[[str], str]) -> dict[str, Any]:
    """Family, layers and width of a config, as far as it says them.

    Args:
        config: of a run.
        named: gives the name of a model by its path (:meth:`app.runs.runs.Runs.named`).
    """
    model = config.get("model") or {}
    if model.get("checkpoint"):
        begun = _begun_with(str(model["checkpoint"]), named)
        return {"family": None, "layers": None, "width": None, "from": begun}
    try:
        published = size(str(model.get("size")))
    except InputError:
        return {"family": None, "layers": None, "width": None, "from": None}
    changed = model.get("overrides") or {}
    return {
        "family": published.family,
        "layers": changed.get("layers") or len(published.schedule),
        "width": changed.get("width") or published.width,
        "from": None,
    }


def _begun_with(checkpoint: str, named: Callable[[str], str]) -> str:
    """A model as the list of runs names it: by its run, its hub id or the end of its path."""
    name = named(checkpoint)
    if not name.startswith((ELSEWHERE, FOLDER_PREFIX)):
        return name.removeprefix(RUN_PREFIX).removeprefix(HUB_PREFIX)
    # The folder of a run says nothing by its last part.
    *parts, last = Path(checkpoint).parts
    if last == "model" and parts:
        *parts, last = parts
    if len(parts) > 1 and parts[-1] in ("checkpoints", "snapshots"):
        last = f"{parts[-2]}/{last}"
    return last
