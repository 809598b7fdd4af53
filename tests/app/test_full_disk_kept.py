"""A full disk where the page writes for itself: a sentence, nothing lost, nothing half-written."""

import errno
import hashlib
import io
import subprocess
from collections import namedtuple
from functools import partial
from types import SimpleNamespace

import pytest

from app.labs.train.form import Form
from app.runs import process as run_process
from app.runs import room, shipped
from core_models import InputError
from tests.app.test_runs import CONFIG
from tests.app.test_train_tasks import OTHER, OWN, RACE, TASK
from tests.training.failing import failing

WRITES = ("fsync", "replace", "rename", "mkdir", "open", "write")
"""What a full disk refuses: it lets files be removed."""
TEXT = "\n\n".join(f"The cat sees dog {n}.\nA bird hears {n} cats." for n in range(40)).encode()
ROWS = "\n".join(f"The cat sees dog {n}.,{('good', 'bad')[n % 2]},other" for n in range(60))
TABLE = f"text,label,more\n{ROWS}\n".encode()
GONE = ".lock"


@pytest.fixture
def children(monkeypatch):
    """Processes that sleep, in place of trainings."""
    started = []

    def start(*_):
        started.append(subprocess.Popen(["sleep", "600"], start_new_session=True))
        return started[-1]

    monkeypatch.setattr(run_process, "start", start)
    yield started
    for child in started:
        child.kill()
        child.wait()


@pytest.fixture
def table():
    """A Parquet table."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    found = io.BytesIO()
    rows = [line.split(",") for line in ROWS.splitlines()]
    columns = {"text": [row[0] for row in rows], "label": [row[1] for row in rows]}
    parquet.write_table(pyarrow.table(columns), found)
    return found.getvalue()


def contents(root):
    """Every file below a folder, by what it holds."""
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in root.rglob("*")
        if path.is_file() and path.name != GONE
    }


def done(act, words="The disk of this server is full"):
    """What an act has given; None where it was refused in these words."""
    try:
        return act()
    except InputError as error:
        if words in str(error):
            return None
        raise


def at_every_moment(root, act, undo=lambda found: None, allowed=()):
    """Let each write of an act fail once: refused whole, or done; then it can be done again.

    Args:
        root: the folder that is looked at.
        act: what a visitor does.
        undo: takes back what was done, so that the next one is as the first.
        allowed: parts of names of files that may be written all the same.
    """
    refused = 0
    for moment in range(1, 200):
        before = contents(root)
        with failing(moment, errno.ENOSPC, WRITES) as disk:
            found = done(act)
        refused += found is None
        if found is None:
            after = contents(root)
            new = {name: held for name, held in after.items() if before.get(name) != held}
            assert before.keys() <= after.keys(), disk.failed
            left = [name for name in new if not any(part in name for part in allowed)]
            assert left == [], disk.failed
            again = act()
            undo(again)
        else:
            undo(found)
        if disk.failed is None:
            assert refused >= 2
            return
    pytest.fail("not all moments were reached")


def forget(inbox):
    """Takes back what was sent."""

    def undo(found):
        for path in inbox.folder.iterdir():
            path.unlink()

    return undo


def test_what_is_sent(make_runs, table):
    inbox = make_runs().inbox
    inbox.root.mkdir()
    documents = [["A cat.", "A dog."], ["A bird."]]
    sends = (
        lambda: inbox.save("a.txt", TEXT),
        lambda: inbox.save("a.csv", TABLE),
        lambda: inbox.save("a.parquet", table),
        lambda: inbox.save_labelled("a.csv", TABLE),
        lambda: inbox.save_labelled("a.parquet", table),
        lambda: inbox.save_documents("a.txt", iter(documents)),
    )
    for send in sends:
        at_every_moment(inbox.root, send, forget(inbox))


def test_what_was_sent_before_is_not_lost_when_it_is_sent_again(make_runs, table):
    inbox = make_runs().inbox
    sent = [
        inbox.save("a.txt", TEXT).id,
        inbox.save("a.csv", TABLE).id,
        inbox.save("a.parquet", table).id,
        inbox.save_labelled("b.csv", TABLE)["id"],
    ]
    before = contents(inbox.root)
    for moment in range(1, 60):
        for name, content in (("a.txt", TEXT), ("a.csv", TABLE), ("a.parquet", table)):
            with failing(moment, errno.ENOSPC, WRITES):
                done(partial(inbox.save, name, content))
            assert contents(inbox.root) == before, moment
    assert all(inbox.find(each).exists() for each in sent)


def test_another_column_of_a_table(make_runs):
    inbox = make_runs().inbox
    key = inbox.save("a.csv", TABLE).id

    def undo(found):
        for path in inbox.folder.glob(f"{key}.2.*"):
            path.unlink()

    at_every_moment(inbox.root, lambda: inbox.facts(f"{key}.2"), undo)


@pytest.mark.parametrize(
    "kind", ["pretraining", pytest.param("task", marks=pytest.mark.slow), "race", "again"]
)
def test_a_new_run(make_runs, children, kind):
    """As the form starts one: it is there and at work, or the list is as it was."""
    runs = make_runs()
    text = runs.inbox.save("a.txt", TEXT).id
    rows = runs.inbox.save_labelled("a.csv", TABLE)["id"]
    config, ids, source = {
        "pretraining": (CONFIG, [text], None),
        "task": (TASK | {"task": {"kind": "classify"}}, [rows], None),
        "race": (RACE, [text], None),
        "again": (None, [], runs.create(CONFIG, texts=[text])),
    }[kind]
    config = runs.as_form(source) if config is None else config
    question = {"wish": {"owner": OWN}, "request": SimpleNamespace(username=None)}

    class Asked(Form):
        def __init__(self):
            self.runs = runs

        def asked(self, question):
            return config, ids, source

    def undo(found):
        children[-1].kill()
        children[-1].wait()
        run = found[0]["id"]
        assert runs.may_change(run, OWN)
        assert not runs.may_change(run, OTHER)
        runs.delete(run)

    listed = runs.ids()
    at_every_moment(runs.root, lambda: Asked().create(question), undo)
    assert runs.ids() == listed
    assert not [path for path in runs.root.iterdir() if path.name.endswith(".part")]
    assert all(child.poll() is not None for child in children), "no process that nobody knows of"


def test_a_run_that_goes_on(make_runs, children):
    """It is as it was, or waits for room in the queue: nothing of it is lost."""
    runs = make_runs()
    run = runs.create(CONFIG)
    folder = runs.folder(run)
    folder.append_metrics({"step": 1, "loss": 2.0})

    def act():
        runs.start(run)
        return run

    def tried():
        if runs.state(run) == "queued":  # what the watch does when there is room
            runs._fill_slots()
            return run
        return act()

    def undo(found):
        children[-1].kill()
        children[-1].wait()
        (folder.path / "launch.json").unlink()

    written = ("page.json", "queue", "output.txt")
    at_every_moment(runs.root, tried, undo, allowed=written)
    assert folder.metrics() == [{"step": 1, "loss": 2.0}]
    assert all(child.poll() is not None for child in children)


def test_a_run_that_stops(make_runs, children):
    runs = make_runs()
    run = runs.create(CONFIG)
    runs.start(run)

    def act():
        runs.stop(run)
        return run

    at_every_moment(runs.root, act, lambda found: runs.folder(run).clear_stop())


def test_no_process_is_started_where_it_could_not_write(make_runs, children, monkeypatch):
    runs = make_runs()
    run = runs.create(CONFIG)
    usage = namedtuple("usage", "total used free")(1, 1, 0)
    monkeypatch.setattr(room.shutil, "disk_usage", lambda path: usage)
    with pytest.raises(InputError, match="waits in the queue"):
        runs.start(run)
    assert (runs.state(run), children) == ("queued", [])


def test_the_shipped_runs(tmp_path):
    """One whose copy fails leaves nothing, and comes with the next start."""
    root = tmp_path / "runs"
    for moment in range(1, 12):
        with failing(moment, errno.ENOSPC, WRITES):
            done(partial(shipped.install, root), "No space left on device")
        assert not [path for path in root.glob(".*") if path.is_dir()]
    shipped.install(root)
    assert {path.name for path in shipped.SHIPPED.iterdir() if path.is_dir()} <= {
        path.name for path in root.iterdir()
    }
    (root / ".shipped").write_bytes(b"\xff\xfe")  # damaged: what is there is left as it is
    shipped.install(root)
