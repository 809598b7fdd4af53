"""``python -m zoo``: train, measure, ship and score the shipped set."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from core_models.checkpoints.files import CONFIG
from core_models.cli.arguments import positive
from core_models.cli.main import READER_GONE
from core_models.errors import InputError, let_go, refused
from core_models.model import SHIPPED
from core_models.training.folder import RunFolder
from zoo import build, recipe, score, score_recipe, ship, text
from zoo.cards import GENERATOR
from zoo.measure import PARTS, TEXTLESS, Questions, measure, rounding
from zoo.report import report
from zoo.ship_run import RUNS, ship_run

DOCUMENT = SHIPPED.parents[1] / "docs" / "models.md"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; 0 = done, 2 = the recipe or the data cannot be used."""
    options = _parser().parse_args(argv)
    try:
        options.run(options)
    except InputError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    except BrokenPipeError:
        let_go()
        return READER_GONE
    except OSError as error:
        sys.stderr.write(f"error: {refused(error)}\n")
        if error.filename is None:
            let_go()
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m zoo", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    making = verbs.add_parser(
        "build", help="train, evaluate and export models; goes on where it was"
    )
    _add_recipe(making, "models of the recipe (default: all)", nargs="*")
    making.add_argument("--models", type=Path, default=SHIPPED, help="where the models go")
    making.add_argument(
        "--from-shipped",
        action="store_true",
        help="train the last run of the recipe alone; it goes on with the shipped model",
    )
    making.set_defaults(run=_build)
    shipping = verbs.add_parser(
        "ship", help="copy measured models in half precision, if all of them take at most 160 MB"
    )
    shipping.add_argument("names", nargs="+", help="models, with the generators beside them")
    shipping.add_argument("--from", dest="source", type=Path, required=True, help="their folder")
    shipping.add_argument("--models", type=Path, default=SHIPPED, help="where the models go")
    shipping.set_defaults(run=_ship)
    running = verbs.add_parser(
        "ship-run", help="copy what the page shows of a finished run, its models in half precision"
    )
    running.add_argument("runs", nargs="+", type=Path, help="folders of finished runs")
    running.add_argument("--target", type=Path, default=RUNS, help="where they go")
    running.set_defaults(run=_ship_run)
    measuring = verbs.add_parser("measure", help="measure models anew, whoever trained them")
    _add_recipe(measuring, "models of the folder", nargs="+")
    measuring.add_argument("--models", type=Path, default=SHIPPED, help="where the models lie")
    measuring.add_argument("--text", type=Path, help="another held-out text than the recipe's")
    measuring.add_argument(
        "--only", nargs="+", choices=PARTS, help="ask this anew and keep what is known of the rest"
    )
    measuring.add_argument(
        "--rounding",
        action="store_true",
        help="keep nothing, say what half precision changes of models with float32 weights",
    )
    measuring.set_defaults(run=_measure)
    scoring = verbs.add_parser(
        "score", help="fine-tune models on labelled sets over seeds; goes on where it was"
    )
    scoring.add_argument("names", nargs="*", help="models (default: all but generators)")
    scoring.add_argument("--tasks", nargs="+", help="of the recipe (default: all of the language)")
    scoring.add_argument("--seeds", type=positive, default=3, help="1 to this one (default: 3)")
    scoring.add_argument(
        "--kinds", nargs="+", choices=score.KINDS, default=score.KINDS, help="(default: both)"
    )
    scoring.add_argument("--recipe", type=Path, help="another than assets/recipes/scores.json")
    scoring.add_argument("--data", type=Path, help="folder of the open sets")
    scoring.add_argument(
        "--work", type=Path, default=Path("runs/scores"), help="(default: runs/scores)"
    )
    scoring.add_argument("--models", type=Path, default=SHIPPED, help="where the models lie")
    scoring.set_defaults(run=_score)
    document = verbs.add_parser("report", help="write docs/models.md")
    document.add_argument("--models", type=Path, default=SHIPPED)
    document.add_argument("--output", type=Path, default=DOCUMENT)
    document.set_defaults(run=_report)
    return parser


def _add_recipe(parser: argparse.ArgumentParser, names: str, *, nargs: str) -> None:
    """What says which text a model reads, and how it is asked."""
    parser.add_argument("names", nargs=nargs, help=names)
    parser.add_argument("--recipe", type=Path, help="another recipe than assets/recipes/zoo.json")
    parser.add_argument("--budget", default="cpu", help="a budget of the recipe (default: cpu)")
    parser.add_argument("--data", type=Path, help="folder of the text that the recipe samples")
    parser.add_argument("--work", type=Path, default=Path("runs/zoo"), help="(default: runs/zoo)")
    parser.add_argument(
        "--words", type=positive, default=2000, help="hidden words of the evaluation"
    )


def _build(options: argparse.Namespace) -> None:
    zoo = recipe.read(options.recipe or recipe.RECIPE).at(options.budget)
    for name in options.names or zoo.models:
        zoo.run_settings(name, options.budget)  # refuse a wrong name before any work
    for name in options.names or zoo.models:
        run = build.train(
            zoo,
            name,
            budget=options.budget,
            work=options.work,
            data=options.data,
            say=_say,
            shipped=SHIPPED if options.from_shipped else None,
        )
        results = build.evaluate(run, _held_out(zoo, name, options), words=options.words)
        build.export(zoo, name, run, results, options.models)


def _ship(options: argparse.Namespace) -> None:
    ship.ship(options.names, options.source, options.models, _say)


def _ship_run(options: argparse.Namespace) -> None:
    for path in options.runs:
        ship_run(RunFolder(path), options.target, _say)


def _measure(options: argparse.Namespace) -> None:
    zoo = recipe.read(options.recipe or recipe.RECIPE).at(options.budget)
    textless = bool(options.only) and set(options.only) <= TEXTLESS and not options.rounding
    for name in options.names:
        held_out = None if textless else options.text or _held_out(zoo, name, options)
        questions = Questions.of(held_out, words=options.words)
        if not options.rounding:
            found = measure(options.models / name, questions, options.only)
            _say(f"{name}: {_told(found)}")
            continue
        change, whole, half = rounding(options.models / name, questions)
        _say(f"{name}: largest difference of a probability {change:.2g}")
        _say(f"  float32: {_told(whole)}\n  float16: {_told(half)}")


def _held_out(zoo: recipe.Zoo, name: str, options: argparse.Namespace) -> Path:
    """What a model is measured on: the sampled sources' part of what its recipe holds out, if any.

    The Primer's is no fair question: models began with one that had read other parts of it.
    Chinese models are asked about both, which are small.
    """
    whose = name.removesuffix(GENERATOR)
    zoo.run_settings(whose, options.budget)
    chosen = zoo.models[whose].text
    made = text.of(zoo.texts, chosen, options.work / "texts", options.data)
    sampled = not zoo.is_chinese(whose) and made.open.stat().st_size > 0
    return made.open if sampled else made.held_out


def _told(figures: dict[str, Any]) -> str:
    """The numbers of a model in one line."""
    shown = [
        f"{name} {value:.4f}" if isinstance(value, float) else f"{name} {value}"
        for part in figures.values()
        for name, value in part.items()
        if not isinstance(value, dict)
    ]
    return ", ".join(shown)


def _score(options: argparse.Namespace) -> None:
    work = score.Work(
        recipe=score_recipe.read(options.recipe or score_recipe.RECIPE),
        models=options.models,
        folder=options.work,
        data=options.data,
        kinds=options.kinds,
    )
    found = sorted(path.parent.name for path in options.models.glob("*/config.json"))
    names = options.names or [name for name in found if not name.endswith(GENERATOR)]
    score.score(work, names, options.tasks, seeds=options.seeds, say=_say)


def _report(options: argparse.Namespace) -> None:
    if not any(options.models.glob(f"*/{CONFIG}")):
        raise InputError(f"{options.models} holds no model; give the folder of some.")
    options.output.write_text(report(options.models), encoding="utf-8")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
