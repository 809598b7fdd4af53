"""What an operator may know of the answers: how many, how long, and none of what was asked.

Counters and latencies stand at ``/metrics`` in Prometheus text; with ``CLOZE_LOG=json`` each answer
is a line of the server's output, too.
"""

import json
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, Gauge, Histogram, generate_latest
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from core_models import InputError

SECONDS = Histogram(
    "cloze_answer_seconds",
    "Seconds from a question of the page to its answer.",
    ("answer", "outcome"),
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0),
)
THREADS = Gauge("cloze_threads", "Threads of the server.")
THREADS.set_function(threading.active_count)
_LOG = logging.getLogger("cloze.answers")


@contextmanager
def counted(answering: Callable[..., Any]) -> Iterator[None]:
    """Count and time an answer under the name of the function that gives it.

    Its outcome is ``answered``, ``refused`` (an InputError, which the page shows), ``failed``, or
    ``left`` when nobody waited for it any more.
    """
    began, outcome = time.perf_counter(), "left"
    try:
        yield
        outcome = "answered"
    except InputError:
        outcome = "refused"
        raise
    except ClientDisconnect:
        raise
    except Exception:
        outcome = "failed"
        raise
    finally:
        seconds = time.perf_counter() - began
        name = name_of(answering)
        SECONDS.labels(name, outcome).observe(seconds)
        if _LOG.isEnabledFor(logging.INFO):
            line = {"time": round(time.time(), 3), "answer": name, "outcome": outcome}
            _LOG.info(json.dumps(line | {"milliseconds": round(1000 * seconds, 1)}))


def name_of(answering: Callable[..., Any]) -> str:
    """Where an answering function lives: ``labs.timeline.answers.read``."""
    while isinstance(answering, partial):
        answering = answering.func
    module = answering.__module__.removeprefix("app.")
    return f"{module}.{answering.__qualname__}".replace(".<locals>.", ".").replace("<lambda>", "_")


def write_lines() -> None:
    """Write a line of JSON for each answer, from now on."""
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(logging.Formatter("%(message)s"))
    _LOG.addHandler(handler)
    _LOG.setLevel(logging.INFO)
    _LOG.propagate = False


def routes() -> list[Route]:
    """``/health``, which needs no model, and ``/metrics``."""
    return [Route("/health", _health), Route("/metrics", _metrics)]


def _health(_: Request) -> Response:
    return JSONResponse({"status": "ok"}, headers={"cache-control": "no-store"})


def _metrics(_: Request) -> Response:
    return Response(generate_latest(), headers={"content-type": CONTENT_TYPE_LATEST})
