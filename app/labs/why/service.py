"""Explanations for the page: questions in, answers or their progress out. No Gradio in it."""

import asyncio
import logging
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import core_models as cm
from app.labs.why import answers as why
from app.labs.why import scene as why_scene
from app.labs.why.methods import installed
from app.serving import gpu
from app.serving.cache import Cache
from app.serving.desk import Desk, StoppedError, Tell, wait
from app.serving.session import Session
from core_models import InputError
from core_models.prediction.targets import frozen_copy

PATIENCE = 0.25
"""Seconds until a question that takes longer is answered with its progress."""
_PLANS = 64
BROKEN = "The explanation could not be computed. Try another sentence or model."
MISSING = (
    "The package captum is not installed here, and this lab computes its explanations with it. "
    'Install it where this page runs (pip install "captum>=0.9") and start the page again.'
)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a computation is."""

    share: float
    ahead: int
    """How many computations come before it."""


def _there(question: why.Question, model: cm.Model) -> dict[str, Any]:
    """An explanation in the process that has the GPU, where nobody hears how far it is."""
    copy = frozen_copy(model)
    return why.explain(copy, question, (), lambda _: None, lambda _, compute: compute())


class Explainer:
    """Answers what visitors ask, one long computation at a time."""

    def __init__(self, session: Session, *, desk: Desk | None = None) -> None:
        self.session = session
        self.desk = desk or Desk()
        self._plans = Cache(_PLANS)
        self._names: WeakKeyDictionary[cm.Model, str] = WeakKeyDictionary()
        self._copies: WeakKeyDictionary[cm.Model, cm.Model] = WeakKeyDictionary()

    async def plan(self, wanted: why.Wanted) -> tuple[cm.Model, why.Question, dict[str, Any]]:
        """The model, the question with everything chosen, and what the page shows of the choices.

        Raises:
            InputError: It cannot be asked, or captum is missing.
        """
        if not installed():
            raise InputError(MISSING)
        model = await self.session.ready(wanted.model)
        self._names[model] = wanted.model
        key = (self.session.number(model), wanted)
        if (found := self._plans.get(key)) is None:
            found = await self.session.compute(lambda: why_scene.plan(model, wanted), model)
            self._plans.put(key, found, 1)
        return model, *found

    async def able(self, name: str) -> dict[str, Any]:
        """What could be asked of a model."""
        try:
            return why_scene.able_of(await asyncio.to_thread(self.session.model, name))
        except InputError:
            return {"kinds": (), "class_head": None}

    async def explain(
        self, model: cm.Model, question: why.Question, visitor: str
    ) -> dict[str, Any] | Progress:
        """What speaks for an answer, or how far its computation is.

        Raises:
            StoppedError: The visitor has given it up.
        """
        key = question.key(self.session.number(model))

        def work(tell: Tell) -> dict[str, Any]:
            return self._explained(model, question, key, tell)

        return await self._computed(visitor, (key, question.options), work)

    async def check(
        self, model: cm.Model, question: why.Question, seed: int, visitor: str
    ) -> dict[str, Any] | Progress:
        """The explanation on a model whose top layers are drawn anew, or how far that is."""
        key = question.key(self.session.number(model))

        def work(tell: Tell) -> dict[str, Any]:
            base = self._explained(model, question, key, tell)["methods"]
            return why.check(model, question, base, seed, tell)

        return await self._computed(visitor, (key, question.options, "check", seed), work)

    def code(self, scene: dict[str, Any], question: why.Question) -> str:
        """Python that recomputes the attributions."""
        return why_scene.code_lines(self.session.loadable(scene["model"]), question)

    # --- inside -----------------------------------------------------------------------------

    def _explained(
        self, model: cm.Model, question: why.Question, key: tuple[Hashable, ...], tell: Tell
    ) -> dict[str, Any]:
        """On the desk's thread, with a copy made once there; short passes keep to one core.

        A large model explains itself where the GPU is, where one is lent.
        """
        if gpu.ON_GPU is not None and gpu.large(model):
            folder = self.session.folder(self._names[model])
            number, work = self.session.number(model), partial(_there, question)
            found: dict[str, Any] = gpu.ON_GPU("work", str(folder), number, [work])[0]
            return found
        self.session.cores.choose_here()
        if (copy := self._copies.get(model)) is None:
            copy = self._copies[model] = frozen_copy(model)
        return why.explain(copy, question, key, tell, why.keeper(self.desk.parts))

    async def _computed(
        self, visitor: str, key: Hashable, work: Callable[[Tell], Any]
    ) -> dict[str, Any] | Progress:
        job = self.desk.ask(visitor, key, work)
        if not await wait(job, visitor, PATIENCE):
            return Progress(share=job.share, ahead=self.desk.ahead(job))
        try:
            found: dict[str, Any] = job.future.result()
            return found
        except StoppedError:
            if visitor not in job.visitors:
                raise
            return Progress(share=0.0, ahead=0)  # the page asks again
        except InputError:
            raise
        except Exception as error:
            _log.exception("an explanation failed")
            raise InputError(BROKEN) from error
