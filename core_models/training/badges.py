"""Which heads of a model were trained here, came with converted files, or are missing."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from core_models.families import FAMILIES
from core_models.inspection import inspect
from core_models.model import CARD
from core_models.objectives import NEEDS
from core_models.training import folder as run_folder

State = Literal["trained", "converted", "missing"]

_WHY = {
    "trained": "Trained by this project; its record lies with the model.",
    "converted": "In the files, which hold no record of a training here.",
    "missing": "Belongs to the family's pretraining, but is not in the files.",
}


@dataclass(frozen=True, kw_only=True)
class Badge:
    """What is known of one head."""

    head: str
    state: State
    why: str
    """A sentence for people."""


def badges(folder: Path) -> tuple[Badge, ...]:
    """One badge for each head that the files hold, then for those that they lack.

    A head counts as trained here if the model's card (``cloze.json``: ``trained``) names it, or if
    the folder lies in a run's folder whose ``evaluation.json`` has its held-out figures (or, after
    fine-tuning, its task). Snapshots and checkpoints of a run that has none yet have the heads of
    the objectives in its ``status.json``. ``cloze_objectives`` in config.json is no proof: a
    converted checkpoint has it, too. Heads that may be missing are those of the objectives of
    config and family.

    Args:
        folder: In the format of transformers.

    Raises:
        InputError: the folder holds no supported model.
    """
    found_in = inspect(folder)
    present = found_in.heads
    trained = _named_by_card(folder) | _named_by_run(folder, present)
    expected: dict[str, None] = {}
    if found_in.config is not None:
        published = next(iter(FAMILIES[found_in.family].sizes.values())).objectives
        expected = dict.fromkeys((*found_in.config.objectives, *published))
    found = [_badge(head, "trained" if head in trained else "converted") for head in present]
    return (*found, *(_badge(head, "missing") for head in expected if head not in present))


def _badge(head: str, state: State) -> Badge:
    return Badge(head=head, state=state, why=_WHY[state])


def _named_by_card(folder: Path) -> set[str]:
    named: Any = run_folder.read_json(folder / CARD).get("trained", [])
    return {str(name) for name in named} if isinstance(named, list) else set()


def _named_by_run(folder: Path, present: tuple[str, ...]) -> set[str]:
    """Heads that the run around a folder has measured or, before its end, those that it trains."""
    run = _run_around(folder.resolve())
    if run is None:
        return set()
    found = run_folder.read_json(run / "evaluation.json")
    held_out = found.get("held_out")
    if isinstance(held_out, dict):
        names = {name.removesuffix("_loss") for name in held_out if name.endswith("_loss")}
        return {NEEDS[name].head for name in names & NEEDS.keys()}
    if found:
        return set(present) if "best_epoch" in found else set()
    # A generator's goal is among the losses only; a fine-tuning's goal has the name of its head.
    status = run_folder.read_json(run / "status.json")
    goals = [status.get("objectives"), status.get("losses")]
    names = {name for goal in goals if isinstance(goal, dict) for name in goal}
    return {NEEDS[name].head if name in NEEDS else name for name in names}


def _run_around(folder: Path) -> Path | None:
    """The run that left a model: at its end, as a snapshot or in a checkpoint."""
    run = folder.parent
    if run.name == "snapshots":
        run = run.parent
    elif run.parent.name == "checkpoints":
        run = run.parent.parent
    return run if (run / "status.json").exists() else None
