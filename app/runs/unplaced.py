"""Texts about runs without the folders that this server keeps its files in. No Gradio in it.

Where something lies is nobody's business but the keeper's; in the files of a run it stays.
"""

import re
import sys
from functools import lru_cache
from pathlib import Path

from app.runs.process import ROOT

_BEFORE, _BEHIND = r"(?<![\w.~-])", r"(/|(?![\w-]|\.\w))"


def unplaced(text: str, runs: Path) -> str:
    """A text whose paths begin in the folder of runs, in this program, or in its user's home.

    Args:
        text: as it was written: a message, a log, settings.
        runs: the folder of all runs.
    """
    pattern, names = _pattern(runs)

    def short(found: re.Match[str]) -> str:
        name = names[found[1]]
        if not found[2]:
            return name
        return "~/" if name == "~" else ""

    return pattern.sub(short, text)


@lru_cache(maxsize=8)
def _pattern(runs: Path) -> tuple[re.Pattern[str], dict[str, str]]:
    """What finds the folders, and the name of each."""
    names = {str(folder): folder.name for folder in (Path(sys.prefix), ROOT, runs)}
    names = {str(Path.home()): "~"} | names
    # The root of all files would be in every path. Of folders within each other the inner one.
    known = sorted((path for path in names if len(path) > 1), key=len, reverse=True)
    return re.compile(f"{_BEFORE}({'|'.join(map(re.escape, known))}){_BEHIND}"), names
