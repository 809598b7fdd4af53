"""Reads bombs, each in a process of its own, and says what it came to and what it cost.

``python -m tests.bombs.reading FOLDER`` loads all that is needed, makes and reads an unspoiled
folder of every kind, and then reads names of bombs from its input, a line each, and writes a line
of JSON about each.
"""

import json
import os
import resource
import select
import shutil
import signal
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

os.environ |= {"TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}

import core_models as cm
from app.runs import models as run_models
from app.runs import shipped
from app.runs.data.texts import Inbox
from app.runs.export.archive import pack
from app.runs.forms import tasks as run_tasks
from app.runs.reports.reports import Reports
from app.runs.reports.shown import Shown
from app.runs.runs import Runs
from app.serving.opened.library import Opened
from app.serving.opened.policy import Policy
from core_models.data import sources, tables
from core_models.errors import InputError
from core_models.tasks import tables as labelled
from core_models.tokenizer import Tokenizer
from tests.bombs import BOMBS
from tests.core.tiny_models import new, tiny
from tests.mutations import _highest, _mark

Read = Callable[[], object]
HANGS = 60
"""Seconds of the clock after which a reader is taken to wait for ever."""
MOST_SECONDS = 20
"""Of the processor, after which a reader is ended."""
MOST_BYTES = 2 * 2**30
"""Of memory, at which a reader is ended."""
TEXTS = ("a cat sat [MASK].", "a" * 2_000, "我们 🙂", "a" * 400 + " a" * 300)


def model_readers(folder: Path) -> list[Read]:
    def load() -> None:
        cm.load(folder).encode(["the cat [MASK]"])

    look = Opened(Policy(mode="any")).look
    return [
        partial(look, str(folder)),
        partial(cm.inspect, folder),
        load,
        partial(run_models.language, folder),
    ]


def vocabulary_readers(folder: Path) -> list[Read]:
    def read() -> None:
        found = Tokenizer.from_folder(folder)
        for text in TEXTS:
            encoded = found.encode(text, "two")
            found.decode(encoded.ids[:100])
            [found.display(each) for each in encoded.ids[:100]]

    return [read, partial(run_models.language, folder)]


def text_readers(folder: Path) -> list[Read]:
    found: list[Read] = []
    inbox = Inbox(folder.parent / "inbox")
    for file in sorted(folder.iterdir()):
        found += [
            lambda file=file: sum(map(len, sources.read_documents(file))),
            lambda file=file: sources.preview(file),
            lambda file=file: tables.head(file, 5),
            lambda file=file: labelled.read(file),
        ]
        if file.is_file() and file.stat().st_size < 2**26:
            content = file.read_bytes()
            found.append(partial(inbox.save, file.name, content))

            def look(file: Path = file, content: bytes = content) -> None:
                sent = inbox.save_labelled(file.name, content)
                run_tasks.look(inbox, {"set": sent["id"]})

            found.append(look)
    return found


def run_readers(folder: Path) -> list[Read]:
    runs = Runs(folder.parent, seconds=10**6)
    reports = Reports(runs)
    shown = Shown(reports)
    run = folder.name

    def listed() -> None:
        others = [each["id"] for each in reports.overview()]
        assert "whole" in others, others

    looks = (reports.live, reports.as_csv, reports.settings, reports.examples, runs.as_form)
    return [
        listed,
        *(partial(look, run) for look in looks),
        lambda: shown.answer({"run": run, "with": ["whole"]}, None),
        lambda: shown.answer({"run": "whole", "with": [run]}, None),
        lambda: runs.models(),
        lambda: runs.model_path(f"run/{run}"),
        lambda: run_models.language(folder / "model"),
        lambda: pack(runs, run).file.close(),
        lambda: runs.folder(run).last_checkpoint(),
        lambda: runs.start(run),
    ]


READERS = {
    "model": model_readers,
    "vocabulary": vocabulary_readers,
    "text": text_readers,
    "run": run_readers,
}


def make_whole(kind: str, folder: Path) -> Path:
    """An unspoiled folder of a kind."""
    if kind == "run":
        shipped.install(folder)
        first = min(path.parent for path in folder.glob("*/config.json"))
        for path in folder.iterdir():
            if path != first and not path.name.startswith("."):
                shutil.rmtree(path)
        first.rename(folder / "whole")
        shutil.copytree(folder / "whole", folder / "spoilt")
        return folder / "spoilt"
    if kind == "model":
        new(tiny("bert-mini")).save(folder / "a")
    elif kind == "vocabulary":
        Tokenizer.train(["The cat sat on the mat."] * 3, vocabulary=100).save(folder / "a")
    else:
        (folder / "a").mkdir()
        rows = [f"The cat sees dog {number}.,animal" for number in range(40)]
        (folder / "a" / "whole.csv").write_text("\n".join(["text,label", *rows]))
    return folder / "a"


def measured(kind: str, folder: Path) -> dict[str, Any]:
    """What became of every reader: its message, or "read"; and the most that one of them cost."""
    found: dict[str, Any] = {"said": [], "longest": 0, "error": None, "seconds": 0, "megabytes": 0}
    start = time.process_time()
    for read in READERS[kind](folder):
        began, held = time.process_time(), _mark()
        said = "read"
        try:
            read()
        except InputError as error:
            said = str(error)
        except Exception as error:
            found["error"] = f"{type(error).__name__}: {str(error)[:300]} {_place(error)}"
        found["seconds"] = max(found["seconds"], time.process_time() - began)
        found["megabytes"] = max(found["megabytes"], _highest() - held)
        found["longest"] = max(found["longest"], len(said))
        found["said"].append(said[:200])
    found["all"] = time.process_time() - start
    return found


def _place(error: BaseException) -> str:
    places, at = [], error.__traceback__
    while at:
        places.append(f"{Path(at.tb_frame.f_code.co_filename).name}:{at.tb_lineno}")
        at = at.tb_next
    return " < ".join(reversed(places))


def tried(name: str, folder: Path) -> dict[str, Any]:
    """Make a bomb and read it, each in a child, which is ended when it takes far too much."""
    _child(lambda: BOMBS[name].make(folder), HANGS)
    return _child(partial(measured, BOMBS[name].kind, folder), MOST_SECONDS)


def _child(do: Callable[[], Any], seconds: int) -> dict[str, Any]:
    receiver, sender = os.pipe()
    child = os.fork()
    if not child:
        os.close(receiver)
        signal.alarm(HANGS)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        os.write(sender, json.dumps(do()).encode())
        os._exit(0)
    os.close(sender)
    ended = "hung, or computed for too long"
    while not select.select([receiver], [], [], 0.005)[0]:
        if _memory(child) > MOST_BYTES:
            os.kill(child, signal.SIGKILL)
            ended = "filled the memory"
    os.waitpid(child, 0)
    with os.fdopen(receiver, "rb") as file:
        told = file.read()
    if told:
        return json.loads(told) or {}
    return {"said": [], "longest": 0, "error": ended, "seconds": 0, "megabytes": 0}


def _memory(child: int) -> int:
    try:
        pages = int(Path(f"/proc/{child}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def tell(found: dict[str, Any]) -> None:
    """A line for whoever has started this."""
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()


def main(root: Path) -> None:
    """Answer names of bombs until the input ends."""
    warnings.simplefilter("ignore")
    whole = {}
    for kind in READERS:
        (root / kind).mkdir(parents=True)
        whole[kind] = make_whole(kind, root / kind)
        tell({"kind": kind} | measured(kind, whole[kind]))
    for number, line in enumerate(sys.stdin):
        name = line.strip()
        kind = BOMBS[name].kind
        at = root / str(number)
        shutil.copytree(root / kind, at, symlinks=True)
        folder = at / whole[kind].relative_to(root / kind)
        tell({"name": name} | tried(name, folder))
        shutil.rmtree(at)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
