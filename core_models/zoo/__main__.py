"""``python -m core_models.zoo``: train, evaluate, export and score the shipped set."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from core_models.cli.arguments import positive
from core_models.errors import InputError
from core_models.model import SHIPPED
from core_models.zoo import build, recipe, score, score_recipe, text
from core_models.zoo.cards import GENERATOR
from core_models.zoo.report import report

DOCUMENT = SHIPPED.parents[1] / "docs" / "models.md"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; 0 = done, 2 = the recipe or the data cannot be used."""
    options = _parser().parse_args(argv)
    try:
        options.run(options)
    except InputError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m core_models.zoo", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    making = verbs.add_parser(
        "build", help="train, evaluate and export models; goes on where it was"
    )
    making.add_argument("names", nargs="*", help="models of the recipe (default: all)")
    making.add_argument("--recipe", type=Path, help="another recipe than assets/recipes/zoo.json")
    making.add_argument("--budget", default="cpu", help="a budget of the recipe (default: cpu)")
    making.add_argument("--data", type=Path, help="folder of the text that the recipe samples")
    making.add_argument("--work", type=Path, default=Path("runs/zoo"), help="(default: runs/zoo)")
    making.add_argument("--models", type=Path, default=SHIPPED, help="where the models go")
    making.add_argument("--words", type=int, default=2000, help="hidden words of the evaluation")
    making.set_defaults(run=_build)
    scoring = verbs.add_parser(
        "score", help="fine-tune models on labelled sets over seeds; goes on where it was"
    )
    scoring.add_argument("names", nargs="*", help="models (default: all but generators)")
    scoring.add_argument("--tasks", nargs="+", help="of the recipe (default: all of the language)")
    scoring.add_argument("--seeds", type=positive, default=3, help="1 to this one (default: 3)")
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
        )
        held_out = options.work / "texts" / zoo.models[name].text / text.HELD_OUT
        results = build.evaluate(run, held_out, words=options.words)
        build.export(zoo, name, run, results, options.models)


def _score(options: argparse.Namespace) -> None:
    work = score.Work(
        recipe=score_recipe.read(options.recipe or score_recipe.RECIPE),
        models=options.models,
        folder=options.work,
        data=options.data,
    )
    found = sorted(path.parent.name for path in options.models.glob("*/config.json"))
    names = options.names or [name for name in found if not name.endswith(GENERATOR)]
    score.score(work, names, options.tasks, seeds=options.seeds, say=_say)


def _report(options: argparse.Namespace) -> None:
    options.output.write_text(report(options.models), encoding="utf-8")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
