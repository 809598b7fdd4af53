"""How large the house is: ``python -m benchmarks.house``.

Lines of the page's scripts and styles, of ``app`` and ``viz``, and of each lab's folder (Python,
scripts and styles; word lists are no code).
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CODE = (".py", ".js", ".css")


def lines(folder: Path, *endings: str) -> int:
    """Lines of the files below a folder whose names end so."""
    return sum(
        len(path.read_text(encoding="utf-8").splitlines())
        for path in folder.rglob("*")
        if path.suffix in endings
    )


def main() -> int:
    """Print the figures."""
    app, viz = ROOT / "app", ROOT / "viz"
    labs = sorted((app / "labs").iterdir(), key=lambda folder: -lines(folder, *CODE))
    rows = [
        ("script", lines(app, ".js")),
        ("style", lines(app, ".css")),
        ("app and viz", lines(app, *CODE) + lines(viz, *CODE)),
        *((f"lab {lab.name}", lines(lab, *CODE)) for lab in labs if lab.is_dir()),
    ]
    sys.stdout.writelines(f"{name:<18}{count:>7,}\n" for name, count in rows if count)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
