"""``python -m core_models.zoo``: train, evaluate and export the shipped set."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from core_models.errors import InputError
from core_models.model import SHIPPED
from core_models.zoo import build, recipe, text
from core_models.zoo.report import report

DOCUMENT = SHIPPED.parents[1] / "docs" / "models.md"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; 0 = done, 2 = the recipe or the data cannot be used."""
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
    document = verbs.add_parser("report", help="write docs/models.md")
    document.add_argument("--models", type=Path, default=SHIPPED)
    document.add_argument("--output", type=Path, default=DOCUMENT)
    options = parser.parse_args(argv)
    try:
        if options.verb == "report":
            _report(options.models, options.output)
        else:
            _build(options)
    except InputError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    return 0


def _build(options: argparse.Namespace) -> None:
    zoo = recipe.read(options.recipe or recipe.RECIPE)
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


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _report(models: Path, output: Path) -> None:
    output.write_text(report(models), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
