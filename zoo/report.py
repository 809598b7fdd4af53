"""docs/models.md: the set side by side, from the files that lie beside the models."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from zoo import claims, goals, recipe, score_recipe
from zoo import report_texts as texts
from zoo.cards import GENERATOR, text_lines
from zoo.entries import KINDS, Entry, entries, spread, unlearnt
from zoo.score_recipe import Scores

_BASELINES = {
    "majority": "*commonest answer*",
    "bag_of_words": "*bag of words*",
    "weighted_words": "*bag of words, tf-idf*",
    "rule": "*simple rule*",
}
_RULES = ("tag_of_word", "overlap", "nearest_sentence")
_NONE = "\u2013"
_DEAF = (
    "it reads from left to right, and the first token, which stands for a text, sees only itself."
)
_BUILD = "`python -m zoo build NAME`"

Column = Callable[[Entry], str | None]


def report(folder: Path) -> str:
    """The page for all models of a folder."""
    zoo, scores = recipe.read(), score_recipe.read()
    order = [n for name in zoo.models for n in (name, f"{name}{GENERATOR}")]
    found = entries(folder, order)
    asked = {e.figures["words"]["words"] for e in found.values() if "words" in e.figures}
    words = " or ".join(f"{n:,}" for n in sorted(asked)) or "2,000"
    lines = [
        texts.HEADER,
        *_section("Training", texts.TRAINING, found.values(), _training(zoo), words=5),
        *_apart(found.values()),
        *_texts(zoo, found.values()),
        *_section("Predicting words", texts.WORDS.format(words=words), found.values(), _PREDICTING),
        *_section("Facts", texts.FACTS, found.values(), _CAPITALS),
        *_section("Plain sentences", texts.PLAIN, found.values(), _PLAINLY),
        *_section("Pairs of texts", texts.PAIRS, found.values(), _PAIR_TASKS, words=2),
        *_section("Catching forgeries", texts.FORGERIES, found.values(), _CAUGHT),
        *_section("Attention", texts.LOOKING, found.values(), _LOOKING),
        *_fine_tuned(found, scores),
        *_claimed(found),
        *_aimed(found),
    ]
    return "\n".join(lines)


# -- figures of evaluation.json -------------------------------------------------------------------


def _section(
    title: str, text: str, found: Iterable[Entry], columns: Mapping[str, Column], *, words: int = 1
) -> list[str]:
    """A table with a row for each model that has any of the figures, and reasons below.

    The first ``words`` columns hold no numbers.
    """
    rows = []
    without: dict[str, list[str]] = {}
    for entry in found:
        cells = [column(entry) for column in columns.values()]
        if not entry.figures or any(cell is not None for cell in cells):
            rows.append([entry.name, *(cell or _NONE for cell in cells)])
        if None in cells:
            without.setdefault(_reason(entry, title), []).append(entry.name)
    table = [*_table(("model", *columns), rows, words=words), ""] if rows else []
    notes = [f"- {', '.join(names)}: {reason}" for reason, names in without.items()]
    return [f"## {title}", "", *([text] if text else []), *table, *_notes(notes)]


def _reason(entry: Entry, title: str) -> str:
    """Why a row of a table has gaps."""
    if not entry.figures:
        return f"no `evaluation.json` lies beside it; {_BUILD} trains and measures it anew."
    if title == "Training" and not entry.training:
        return f"exported before these figures were kept; {_BUILD} exports it again."
    if title == "Training":
        return "no model of the recipe has this name."
    if title == "Catching forgeries":
        return "it has no head for replaced tokens."
    if title == "Pairs of texts":
        if set(entry.training.get("held_out", {})) & {f"{name}_accuracy" for name in _PAIR_NAMES}:
            return f"not asked yet; `python -m zoo measure {entry.name}` does it."
        return "trained for neither task."
    if title == "Attention":
        command = "`python -m zoo measure NAME --only attention`"
        return f"not asked yet; {command} does it."
    if "words" not in entry.figures:
        return "it predicts no pieces, it judges them."
    if title == "Plain sentences":
        command = "`python -m zoo measure NAME --only plain_sentences`"
        return f"not asked yet; {command} does it."
    if "minimal_pairs" not in entry.figures:
        return "these sentences are English; the model is not."
    if title == "Facts":
        return "no capital is one piece of its vocabulary."
    return "not asked yet; `python -m zoo measure NAME` does it."


def _of(*path: str, show: Callable[[Any], str]) -> Column:
    def column(entry: Entry) -> str | None:
        values: Any = entry.figures
        for key in path:
            values = values.get(key) if isinstance(values, Mapping) else None
        return None if values is None else show(values)

    return column


def _share(value: float) -> str:
    return f"{100 * value:.1f} %"


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.2f}" for value in values)


def _training(zoo: recipe.Zoo) -> dict[str, Column]:
    def what(entry: Entry) -> str | None:
        if entry.name.endswith(GENERATOR):
            return f"generator of {entry.name.removesuffix(GENERATOR)}"
        return zoo.models[entry.name].title if entry.name in zoo.models else None

    return {
        "what": what,
        "machine": _of("run", "machine", show=str),
        "commit": _of("run", "commit", show=str),
        "text": _of("run", "texts", show=", ".join),
        "parameters": lambda entry: _whole(entry.parameters),
        "tokens of text": _of("run", "text_tokens", show=_whole),
        "tokens read": _of("run", "tokens", show=_whole),
        "minutes": _of("run", "seconds", show=lambda seconds: _whole(seconds / 60)),
    }


def _apart(found: Iterable[Entry]) -> list[str]:
    """What sets some models apart from the rest, as their cards say it."""
    notes: dict[str, list[str]] = {}
    for entry in found:
        if note := entry.training.get("note"):
            notes.setdefault(note, []).append(entry.name)
    lines = [f"- {', '.join(names)}: {note}" for note, names in notes.items()]
    return ["Trained otherwise than the rest:", "", *lines, ""] if lines else []


def _texts(zoo: recipe.Zoo, found: Iterable[Entry]) -> list[str]:
    """The sources of each text that a model has read."""
    lines = []
    for name in sorted({text for e in found for text in e.training.get("texts", ())}):
        if name in zoo.texts:
            other = zoo.texts[name].apart_from
            held = f"without what `{other}` holds out" if other else "of which parts are held out"
            lines += [f"Text `{name}`, {held}:", "", *text_lines(zoo, name), ""]
    return lines


_PIECES = (
    "masked_token_accuracy",
    "masked_diffusion_accuracy",
    "masked_next_token_accuracy",
    "permutation_accuracy",
    "causal_accuracy",
)
"""The first that a model has is told: one read both ways has a causal share beside it."""
_PREDICTING: dict[str, Column] = {
    "words right": _of("words", "accuracy", show=_share),
    "perplexity per word": _of("words", "perplexity", show=lambda v: f"{v:.1f}"),
    "pieces per word": _of("words", "pieces_per_word", show=lambda v: f"{v:.2f}"),
    "pieces right": lambda entry: next(
        (
            _share(entry.training["held_out"][name])
            for name in _PIECES
            if name in entry.training.get("held_out", {})
        ),
        None,
    ),
    "minimal pairs right": _of("minimal_pairs", "accuracy", show=_share),
}
_CAPITALS: dict[str, Column] = {
    "asked": _of("capitals", "asked", show=_whole),
    "first": _of("capitals", "first", show=_whole),
    "in the first five": _of("capitals", "in_first_five", show=_whole),
    "new wording: asked": _of("capitals", "asked_new", show=_whole),
    "first, new wording": _of("capitals", "first_new", show=_whole),
}
_PLAINLY: dict[str, Column] = {
    "asked": _of("plain_sentences", "asked", show=_whole),
    "first": _of("plain_sentences", "first", show=_whole),
    "in the first five": _of("plain_sentences", "in_first_five", show=_whole),
    "unsayable": _of("plain_sentences", "unsayable", show=_whole),
}
_PAIR_NAMES = {"next_sentence": "next sentence", "sentence_order": "sentence order"}
_PAIR_TASKS: dict[str, Column] = {
    "trained for": lambda entry: _PAIR_NAMES.get(entry.figures.get("text_pairs", {}).get("head")),
    "told right": _of("text_pairs", "accuracy", show=_share),
    "follows": _of("text_pairs", "followed", show=_share),
    "random found": _of("text_pairs", "random", show=_share),
    "swapped found": _of("text_pairs", "swapped", show=_share),
}
_CAUGHT: dict[str, Column] = {
    "AUC": _of("forgeries", "auc", show=lambda v: f"{v:.3f}"),
    "replaced": _of("forgeries", "replaced", show=_share),
    "found": _of("forgeries", "found", show=_share),
    "false alarms": _of("forgeries", "false_alarms", show=_share),
    "generator hits the original": _of("forgeries", "generator_hits", show=_share),
}
_LOOKING: dict[str, Column] = {
    "entropy by layer": _of("attention", "entropy", show=_listed),
    "hidden states by layer": _of("attention", "residual", show=_listed),
}


# -- fine-tuning ----------------------------------------------------------------------------------


def _fine_tuned(found: Mapping[str, Entry], scores: Scores) -> list[str]:
    models = [entry for name, entry in found.items() if not name.endswith(GENERATOR)]
    groups = {
        "Sets of the Primer": [n for n, t in scores.tasks.items() if t.shipped and not _zh(t)],
        "Open sets": [n for n, t in scores.tasks.items() if not t.shipped and not _zh(t)],
        "Chinese sets": [n for n, t in scores.tasks.items() if _zh(t)],
    }
    lines = ["## Fine-tuned", "", texts.TUNED]
    for title, tasks in groups.items():
        left = [task for task in tasks if unlearnt(models, task)]
        tasks = [task for task in tasks if task not in left]
        lines += [f"### {title}", ""]
        if tasks:
            lines += [*_asked(tasks, scores, models), ""]
        lines += [_unlearnt(task, scores, models) for task in left]
        some = [entry for entry in models if any(task in entry.tasks for task in tasks)]
        if some:
            lines += [*_table(("model", *tasks), _score_rows(tasks, some)), ""]
        if tasks:
            lines += _notes(_unscored(tasks, scores, models))
    return lines


def _zh(task: score_recipe.TaskRecipe) -> bool:
    return task.language == "zh"


def _asked(tasks: Sequence[str], scores: Scores, models: Sequence[Entry]) -> list[str]:
    rows = []
    for task in tasks:
        known: Mapping[str, Any] = next((e.tasks[task] for e in models if task in e.tasks), {})
        facts = [known.get(key) for key in ("metric", "train_rows", "dev_rows")]
        shown = [_NONE if v is None else str(v).replace("_", " ") for v in facts]
        rows.append([task, scores.tasks[task].title, *shown])
    header = ("task", "what is asked", "metric", "learnt rows", "measured rows")
    return _table(header, rows, words=3)


def _unlearnt(task: str, scores: Scores, models: Sequence[Entry]) -> str:
    """Why a task is in no table."""
    known: Mapping[str, Any] = next(e.tasks[task] for e in models if task in e.tasks)
    return texts.UNLEARNT.format(
        task=task,
        title=scores.tasks[task].title,
        metric=str(known["metric"]).replace("_", " "),
        share=f"{100 * known['baselines']['majority']:.1f}",
        train=known["train_rows"],
        dev=known["dev_rows"],
    )


def _score_rows(tasks: Sequence[str], models: Sequence[Entry]) -> list[list[str]]:
    rows = []
    for key, title in _BASELINES.items():
        cells = [_baseline(task, key, models) for task in tasks]
        if any(cell != _NONE for cell in cells):
            rows.append([title, *cells])
    for entry in models:
        for kind, name in zip(KINDS, (entry.name, "\u2026 from random weights"), strict=True):
            cells = [_spread(entry.values(task, kind)) for task in tasks]
            if any(cell != _NONE for cell in cells):
                rows.append([name, *cells])
    return rows


def _baseline(task: str, key: str, models: Sequence[Entry]) -> str:
    values: Mapping[str, float] = next(
        (e.tasks[task]["baselines"] for e in models if task in e.tasks), {}
    )
    names = _RULES if key == "rule" else (key,)
    value = next((values[name] for name in names if name in values), None)
    return _NONE if value is None else f"{100 * value:.1f}"


def _spread(values: Sequence[float]) -> str:
    found = spread(values)
    if found is None:
        return _NONE
    shown = f"{100 * found.mean:.1f}"
    if found.seeds > 1:
        shown += f" \u00b1 {100 * found.deviation:.1f}"
    return shown if found.seeds == 3 else f"{shown} ({found.seeds})"


def _unscored(tasks: Sequence[str], scores: Scores, models: Sequence[Entry]) -> list[str]:
    """Which model lacks scores for which tasks, and why."""
    lines = []
    zh = _zh(scores.tasks[tasks[0]])
    for entry in models:
        lacking = [task for task in tasks if not entry.values(task, "pretrained")]
        plain = [t for t in tasks if t not in lacking and not entry.values(t, "fresh")]
        chinese = "chinese" in " ".join([entry.name, *entry.training.get("texts", ())])
        if lacking and chinese and not zh:
            lines.append(f"- {entry.name}: these sets are English; the model is not.")
        if chinese != zh:
            continue
        deaf = [task for task in lacking if entry.leftward and scores.tasks[task].of_text]
        if deaf:
            lines.append(f"- {entry.name} ({', '.join(deaf)}): {_DEAF}")
        lacking = [task for task in lacking if task not in deaf]
        why = "the scores are of other weights" if entry.outdated else "not scored yet"
        command = f"`python -m zoo score {entry.name}"
        for names, reason, kind in (
            (lacking, why, ""),
            (plain, "not from random weights", " --kinds fresh"),
        ):
            if names:
                what = "all" if len(names) == len(tasks) else ", ".join(names)
                lines.append(f"- {entry.name} ({what}): {reason}; {command}{kind}` does it.")
    return lines


# -- claims ---------------------------------------------------------------------------------------


def _claimed(found: Mapping[str, Entry]) -> list[str]:
    rows = [
        [o.claim.text, o.claim.published, o.claim.source, o.ours, o.verdict]
        for o in claims.outcomes(found)
    ]
    header = ("claim", "in the paper", "source", "here", "at this scale")
    title = "## What the papers claim beside what came out"
    return [title, "", texts.CLAIMS.format(rule=claims.RULE), *_table(header, rows, words=5), ""]


def _aimed(found: Mapping[str, Entry]) -> list[str]:
    header = ("goal", "at least", "reached", "missed")
    return ["## Goals", "", texts.GOALS, *_table(header, goals.rows(found), words=4), ""]


def _notes(reasons: Iterable[str]) -> list[str]:
    found = list(reasons)
    return ["Without figures:", "", *found, ""] if found else []


def _table(header: Iterable[str], rows: Iterable[Sequence[str]], *, words: int = 1) -> list[str]:
    """Markdown; all columns but the first ones hold numbers."""
    names = list(header)
    listed = [list(row) for row in rows]
    ruler = ["---"] * words + ["---:"] * (len(names) - words)
    return [f"| {' | '.join(row)} |" for row in (names, ruler, *listed)]
