"""Model cards of the set: what a folder holds, how it came to be, how good it is."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core_models.objectives import NEEDS
from core_models.training import durable
from core_models.training.folder import RunFolder, read_json
from zoo.recipe import Repeated, Sampled, Zoo

CARD = "cloze.json"
FIGURES = "evaluation.json"
GENERATOR = "-generator"
"""Ending of the name under which a generator is shipped beside its discriminator."""

_FIGURES = "## Held-out figures"
_ALL_FIGURES = "The figures of all models side by side, and how they are measured: docs/models.md."
_SOURCES = {
    "english/standardebooks": "Standard Ebooks (public domain; editions CC0)",
    "english/usgov": "web sites of GSA and 18F (US government work, CC0)",
    "english/health": "MedQuAD (CC BY 4.0)",
    "english/ushistory": "Office of the Historian, US State Department (US government work, CC0)",
    "english/agencies": "web sites of US agencies (US government work, CC0)",
    "english/guides": "open handbooks (CC BY 3.0 and 4.0, CC BY-SA 4.0, CC0, OGL 3.0)",
    "english/plos": "PLOS articles (CC BY, CC0)",
    "english/stories": "African Storybook and Pratham Books (CC BY, public domain)",
    "english/speeches": "State of the Union and inaugural addresses (public domain)",
    "english/osguides": "Open Source Guides (CC BY 4.0)",
    "english/factbook": "The World Factbook (public domain)",
    "chinese/luxun": "Lu Xun (public domain)",
    "chinese/classics": "Chinese vernacular novels (public domain)",
    "chinese/docs": "Chinese technical documentation (Apache 2.0, CC BY 4.0, CC BY-SA)",
    "chinese/udgsd": "UD Chinese GSD, training sentences (CC BY-SA 4.0)",
    "primer/": "the Primer, written for this project (CC0)",
    "atlas/": "the Atlas, written for this project (CC0)",
}


def write(folder: Path, zoo: Zoo, name: str, run: RunFolder, results: dict[str, Any]) -> None:
    """Write README.md, the title and the figures of a model."""
    _write(folder, zoo, name, run, results, results["model"], generator=False)


def write_generator(
    folder: Path, zoo: Zoo, name: str, run: RunFolder, results: dict[str, Any]
) -> None:
    """The same for the generator that was trained beside it."""
    _write(folder, zoo, name, run, results, results["generator"], generator=True)


def _write(
    folder: Path,
    zoo: Zoo,
    name: str,
    run: RunFolder,
    results: dict[str, Any],
    figures: dict[str, Any],
    *,
    generator: bool,
) -> None:
    title = f"Generator of {name}" if generator else zoo.models[name].title
    goals = _goals(results, generator)
    badge = {
        "title": folder.name,
        "description": title,
        "trained": sorted({NEEDS[name].head for name in goals if name in NEEDS}),
    }
    (folder / CARD).write_text(
        json.dumps(badge, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    run_facts = results["run"]
    beside = figures | {"run": _run_facts(zoo, name, results, generator)}
    (folder / FIGURES).write_text(json.dumps(beside, indent=2) + "\n", encoding="utf-8")
    data = run_facts["data"]
    wanted = " --data FOLDER" if zoo.texts[zoo.models[name].text].sampled else ""
    rows = [
        ("what", title),
        ("read in training", f"{run_facts['tokens']:,} tokens in {run_facts['steps']:,} steps"),
        ("time", f"{run_facts['seconds'] / 60:.0f} minutes on {machine(results)}"),
        ("vocabulary", f"{data['vocabulary']:,} pieces, learnt from the training text"),
        ("training text", f"{data['documents']:,} documents, {data['tokens']:,} tokens"),
        ("held out", f"{data['held_out_documents']:,} documents, not read in its own training"),
        ("files", "float16, which loading widens to float32"),
        *([("commit", results["commit"])] if "commit" in results else []),
    ]
    text = "\n".join(
        [
            "---",
            "license: apache-2.0",
            f"language: {'zh' if zoo.is_chinese(name) else 'en'}",
            "library_name: transformers",
            "---",
            "",
            f"# {folder.name}",
            "",
            "One of a set of small models of all families, trained by one command at the same",
            "depth and width; what sets this one apart from the others is said below.",
            "",
            "```",
            f"python -m zoo build {name}{wanted}",
            "```",
            "",
            "| | |",
            "|---|---|",
            *(f"| {key} | {value} |" for key, value in rows),
            "",
            *([zoo.models[name].note, ""] if zoo.models[name].note else []),
            "## Text",
            "",
            *(line for text in zoo.texts_of(name) for line in [*text_lines(zoo, text), ""]),
            _FIGURES,
            "",
            *_figure_lines(beside),
            "",
            _ALL_FIGURES,
            "",
            "## Licence",
            "",
            "Weights: Apache-2.0. Small models trained on little text for teaching: they know few",
            "facts, repeat what their sources say and must not be asked for advice.",
            "",
        ]
    )
    (folder / "README.md").write_text(text, encoding="utf-8")


def _run_facts(zoo: Zoo, name: str, results: dict[str, Any], generator: bool) -> dict[str, Any]:
    """What docs/models.md tells about the training, and the held-out figures of its own heads."""
    run = results["run"]
    own = _goals(results, generator)
    note = zoo.models[name].note
    return {
        **({"note": note} if note else {}),
        "texts": zoo.texts_of(name),
        "documents": run["data"]["documents"],
        "text_tokens": run["data"]["tokens"],
        "vocabulary": run["data"]["vocabulary"],
        **{key: run[key] for key in ("tokens", "steps", "seconds")},
        "machine": machine(results),
        **({"commit": results["commit"]} if "commit" in results else {}),
        "held_out": {
            key: value
            for key, value in run["held_out"].items()
            if any(key.startswith(f"{name}_") for name in own)
        },
    }


def _goals(results: dict[str, Any], generator: bool) -> set[str]:
    """Names of the objectives that were measured; several may train one head."""
    found = {
        key.removesuffix("_loss")
        for key in results["run"]["held_out"]
        if key.endswith("_loss") and key != "loss"
    }
    if "generator" not in results:
        return found
    return {"masked_token"} if generator else found - {"masked_token"}


def machine(results: dict[str, Any]) -> str:
    """What a run was trained on."""
    environment = results["environment"]
    device = environment.get("device", "cpu")
    threads = environment.get("threads")
    processes = results["run"].get("processes", 1)
    each = f" in each of {processes} processes" if processes > 1 else ""
    return f"{threads} CPU thread{'s' if threads != 1 else ''}{each}" if device == "cpu" else device


def text_lines(zoo: Zoo, text: str) -> list[str]:
    """The sources of a text with their licences, as a list."""
    recipe = zoo.texts[text]
    lines = []
    parts: list[Repeated | Sampled] = [*recipe.repeated, *recipe.sampled]
    for part in parts:
        source = next(v for prefix, v in _SOURCES.items() if part.pattern.startswith(prefix))
        unit = "characters" if part.pattern.startswith("chinese/") else "words"
        amount = (
            f"{part.times} times"
            if isinstance(part, Repeated)
            else f"at most {part.words:,} {unit}"
        )
        lines.append(f"- {source}: {amount}")
    return lines


def refresh(folder: Path) -> None:
    """Write the figures that lie beside a model into its card, if it has one of this module."""
    card = folder / "README.md"
    text = card.read_text(encoding="utf-8") if card.exists() else ""
    head, _, rest = text.partition(f"{_FIGURES}\n")
    _, found, tail = rest.partition(_ALL_FIGURES)
    if found:
        lines = _figure_lines(read_json(folder / FIGURES))
        shown = "\n".join([_FIGURES, "", *lines, "", _ALL_FIGURES])
        durable.write_text(card, head + shown + tail)


def _figure_lines(figures: Mapping[str, Any]) -> list[str]:
    """What ``evaluation.json`` says, as a table."""
    lines = ["| measure | value |", "|---|---:|"]
    for key, value in figures.get("run", {}).get("held_out", {}).items():
        shown = f"{value:.3f}" if key.endswith("_loss") else f"{100 * value:.1f} %"
        lines.append(f"| {key.replace('_', ' ')} | {shown} |")
    if "words" in figures:
        words = figures["words"]
        lines.append(f"| hidden words right | {100 * words['accuracy']:.1f} % |")
        lines.append(f"| perplexity per word | {words['perplexity']:.1f} |")
    if "minimal_pairs" in figures:
        pairs = figures["minimal_pairs"]
        lines.append(f"| minimal pairs right | {100 * pairs['accuracy']:.1f} % |")
    if "capitals" in figures:
        lines.append(f"| capitals: {_counted(figures['capitals'])} |")
    if "plain_sentences" in figures:
        lines.append(f"| plain sentences: {_counted(figures['plain_sentences'])} |")
    if "forgeries" in figures:
        forged = figures["forgeries"]
        lines.append(f"| replaced tokens: area under the ROC curve | {forged['auc']:.3f} |")
        lines.append(f"| replaced tokens found | {100 * forged['found']:.1f} % |")
    if "attention" in figures:
        spread = ", ".join(f"{each:.2f}" for each in figures["attention"]["entropy"])
        lines.append(f"| entropy of the attention by layer, nats | {spread} |")
    return lines


def _counted(found: Mapping[str, int]) -> str:
    numbers = " / ".join(str(found[key]) for key in ("first", "in_first_five", "asked"))
    return f"first / in the first five / asked | {numbers}"
