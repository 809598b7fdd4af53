"""A disk that turned read only, as Linux does after errors: a sentence in place of a 500."""

import asyncio
import errno
import json
import os
import tempfile
from types import SimpleNamespace

import pytest

from app.runs import room
from app.runs import routes as run_routes
from app.runs.export.archive import pack
from core_models import InputError
from core_models.training import durable
from tests.app.test_full_disk_kept import TABLE, TEXT, WRITES, children, contents
from tests.app.test_runs import CONFIG
from tests.training.failing import failing

__all__ = ["children"]
ACTS = {
    "a text is sent": lambda runs, run: runs.inbox.save("a.txt", TEXT),
    "a table is sent": lambda runs, run: runs.inbox.save("a.csv", TABLE),
    "labelled rows are sent": lambda runs, run: runs.inbox.save_labelled("a.csv", TABLE),
    "a run is made": lambda runs, run: runs.create(CONFIG),
    "it starts": lambda runs, run: runs.start(run),
    "it goes": lambda runs, run: runs.delete(run),
}


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("error", [errno.EROFS, errno.EACCES, errno.EIO])
def test_what_the_page_writes(make_runs, children, monkeypatch, act, error):
    runs = make_runs()
    run = runs.create(CONFIG)
    before = contents(runs.root)

    def refuse(*_, **__):
        raise OSError(error, os.strerror(error))

    with monkeypatch.context() as disk:
        for name in ("mkdir", "replace", "rename"):
            disk.setattr(os, name, refuse)
        disk.setattr(durable, "write_bytes", refuse)
        with pytest.raises(InputError, match=r"refuses to write \(.+\).*CLOZE_RUNS"):
            ACTS[act](runs, run)
    now = contents(runs.root)
    assert {name: now[name] for name in now if not name.endswith("/lock")} == before
    ACTS[act](runs, run)  # it is done when the disk takes it again


def test_the_route_says_so(make_runs):
    """Not "Something went wrong on the server", of which nobody learns anything."""
    runs = make_runs()
    runs.inbox.root.mkdir(exist_ok=True)
    routes = run_routes.RunRoutes(runs, SimpleNamespace(runs=runs), None)

    async def body():
        yield TEXT

    request = SimpleNamespace(
        method="POST",
        headers={run_routes.HEADER: "train"},
        stream=body,
        query_params={"name": "a.txt"},
        url=SimpleNamespace(path=run_routes.TEXTS),
    )
    answer = run_routes._guarded(runs.root, routes.send_text)
    with failing(1, errno.EROFS, WRITES):
        found = asyncio.run(answer(request))
    assert found.status_code == 200
    said = json.loads(found.body)["error"]
    assert said == room.REFUSES.format("Read-only file system")


def test_a_model_is_not_packed_where_no_temporary_file_is_taken(make_runs, monkeypatch):
    """Python then finds no such folder at all, which is no run that is gone either."""

    def nowhere(*_, **__):
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr(tempfile, "TemporaryFile", nowhere)
    runs = make_runs()
    run = runs.create(CONFIG)
    with pytest.raises(InputError, match="no room to pack this model"):
        pack(runs, run)
