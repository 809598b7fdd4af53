"""Explanations for the page: questions in, answers or their progress out. No Gradio in it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

import core_models as cm
from app.labs.why import answers as why
from app.labs.why import scene as why_scene
from app.labs.why.desk import Desk, StoppedError, Tell, wait
from app.labs.why.methods import installed
from app.serving.cache import Cache
from app.serving.names import loadable
from app.serving.session import Session
from core_models import InputError
from core_models.prediction.targets import frozen_copy

PATIENCE = 0.25
"""Seconds until a question that takes longer is answered with its progress."""
_PLANS = 64
BROKEN = "The explanation could not be computed. Try another sentence or model."
_log = logging.getLogger(__name__)


class Explainer:
    """Answers what visitors ask, one long computation at a time."""

    def __init__(self, session: Session, *, desk: Desk | None = None) -> None:
        self.session = session
        self.desk = desk or Desk()
        self._plans = Cache(_PLANS)
        self._copies: WeakKeyDictionary[cm.Model, cm.Model] = WeakKeyDictionary()

    async def explain(self, values: Mapping[str, Any], visitor: str) -> dict[str, Any]:
        """What speaks for an answer, or how far its computation is."""
        return await self._safely(values, visitor, self._explain)

    async def check(self, values: Mapping[str, Any], visitor: str) -> dict[str, Any]:
        """The explanation on a model whose top layers are drawn anew, or how far that is."""
        return await self._safely(values, visitor, self._check)

    def leave(self, visitor: str) -> dict[str, Any]:
        """Give up what the visitor waits for."""
        self.desk.leave(visitor)
        return {"state": "stopped", "error": None}

    # --- inside -----------------------------------------------------------------------------

    async def _safely(
        self,
        values: Mapping[str, Any],
        visitor: str,
        answer: Callable[[Mapping[str, Any], str], Awaitable[dict[str, Any]]],
    ) -> dict[str, Any]:
        if not installed():
            return {"state": "missing", "error": None}
        try:
            return {"error": None, **await answer(values, visitor)}
        except InputError as error:
            return {"state": "error", "error": str(error), **await self._able(values)}
        except StoppedError:
            return {"state": "stopped", "error": None}

    async def _explain(self, values: Mapping[str, Any], visitor: str) -> dict[str, Any]:
        model, question, scene = await self._planned(why.read(values))
        key = question.key(self.session.number(model))
        keep = why.keeper(self.desk.parts)

        def work(tell: Tell) -> dict[str, Any]:
            return why.explain(self._copy(model), question, key, tell, keep)

        answer = await self._computed(visitor, (key, question.options), work)
        code = why_scene.code_lines(loadable(scene["model"]), question)
        return {"scene": scene, "code": code, **answer}

    async def _check(self, values: Mapping[str, Any], visitor: str) -> dict[str, Any]:
        seed = why.read_seed(values)
        model, question, _ = await self._planned(why.read(values))
        key = question.key(self.session.number(model))
        keep = why.keeper(self.desk.parts)

        def work(tell: Tell) -> dict[str, Any]:
            base = why.explain(self._copy(model), question, key, tell, keep)["methods"]
            return why.check(model, question, base, seed, tell)

        return await self._computed(visitor, (key, question.options, "check", seed), work)

    def _copy(self, model: cm.Model) -> cm.Model:
        """A copy for the desk's thread, made once there; short passes in it keep to one core."""
        self.session.cores.choose_here()
        if (copy := self._copies.get(model)) is None:
            copy = self._copies[model] = frozen_copy(model)
        return copy

    async def _planned(self, wanted: why.Wanted) -> tuple[cm.Model, why.Question, dict[str, Any]]:
        model = await asyncio.to_thread(self.session.model, wanted.model)
        key = (self.session.number(model), wanted)
        if (plan := self._plans.get(key)) is None:
            plan = await self.session.compute(lambda: why_scene.plan(model, wanted))
            self._plans.put(key, plan, 1)
        return model, *plan

    async def _computed(
        self, visitor: str, key: Hashable, work: Callable[[Tell], Any]
    ) -> dict[str, Any]:
        job = self.desk.ask(visitor, key, work)
        if not await wait(job, PATIENCE):
            return {"state": "working", "share": job.share, "ahead": self.desk.ahead(job)}
        try:
            return {"state": "done", "answer": job.future.result()}
        except (InputError, StoppedError):
            raise
        except Exception as error:
            _log.exception("an explanation failed")
            raise InputError(BROKEN) from error

    async def _able(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """What else could be asked of the model, so that the page can offer it."""
        try:
            name = str(values.get("model"))
            model = await asyncio.to_thread(self.session.model, name)
        except InputError:
            return {"kinds": []}
        return why_scene.able_of(model)
