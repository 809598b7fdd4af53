"""The named endpoints: what the page does, for scripts. Plain values in, JSON out.

Documented in docs/api.md. They share the session with the page, and so its checks and its cache.
"""

import asyncio
import functools
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any, ParamSpec, TypeVar

import gradio as gr

from app.page.sentence import describe, describe_draw
from app.runs.reports.reports import Reports, plain
from app.serving.ask import (
    MOST_CANDIDATES,
    MOST_MARKS,
    Ask,
    Mark,
    clean_marks,
    clean_name,
    clean_text,
    clean_words,
    whole_number,
)
from app.serving.session import Session
from core_models import InputError

MOST_WEIGHTS = 250_000
"""Most attention weights in one answer; as JSON about 2 MB."""

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def _friendly(
    endpoint: Callable[Arguments, Awaitable[Result]],
) -> Callable[Arguments, Awaitable[Result]]:
    """Turn a message for people into Gradio's error; nothing else of an error gets out."""

    @functools.wraps(endpoint)
    async def wrapped(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        try:
            return await endpoint(*args, **kwargs)
        except InputError as error:
            raise gr.Error(str(error), print_exception=False) from None

    return wrapped


class Endpoints:
    """One method per endpoint."""

    def __init__(self, session: Session, reports: Reports | None) -> None:
        self.session = session
        self.reports = reports

    @_friendly
    async def models(self) -> list[dict[str, Any]]:
        """The models that can be asked: name, family, title, description, heads, parameters."""
        return [
            {
                "name": info.name,
                "family": info.family,
                "title": info.title,
                "description": info.description,
                "heads": list(info.heads),
                "parameters": info.parameters,
            }
            for info in self.session.models()
        ]

    @_friendly
    async def tokenize(self, text: str, model: str = "bert-mini") -> dict[str, Any]:
        """The pieces of a text: position, id, raw piece, place in the text, word group."""
        return describe(await self.session.tokenize(text, clean_name(model)))

    @_friendly
    async def mask(
        self,
        text: str,
        model: str = "bert-mini",
        seed: int = 1,
        rate: float = 0.15,
        kind: str = "uniform",
    ) -> dict[str, Any]:
        """A random masking as in pretraining; its marks can be passed to fill and attention."""
        drawn = await self.session.random_mask(
            text, clean_name(model), seed=seed, rate=rate, kind=kind
        )
        return {**describe_draw(drawn), "tokens": [asdict(t) for t in drawn.sentence.tokens]}

    @_friendly
    async def fill(
        self,
        text: str,
        model: str = "bert-mini",
        positions: list[int] | None = None,
        marks: list[dict[str, Any]] | None = None,
        top_k: int = 5,
        words: list[str] | None = None,
    ) -> dict[str, Any]:
        """The model's candidates for each [MASK] in the text and for the positions given."""
        ask = Ask(
            text=clean_text(text),
            model=clean_name(model),
            marks=_marks(positions, marks),
            top_k=whole_number(top_k, "top_k", 1, MOST_CANDIDATES),
            words=clean_words(words or ()),
        )
        result: dict[str, Any] = (await self.session.fill(ask)).to_json()
        return result

    @_friendly
    async def attention(
        self,
        text: str,
        model: str = "bert-mini",
        positions: list[int] | None = None,
        marks: list[dict[str, Any]] | None = None,
        layer: int | None = None,
        head: int | None = None,
    ) -> dict[str, Any]:
        """Attention weights [layers][heads][from][to]; with layer and head, of these alone."""
        ask = Ask(text=clean_text(text), model=clean_name(model), marks=_marks(positions, marks))
        result = await self.session.attention(ask)
        weights = result.probabilities
        layers, heads = weights.shape[:2]
        if layer is not None:
            chosen = whole_number(layer, "layer", 0, layers - 1)
            weights = weights[chosen : chosen + 1]
        if head is not None:
            chosen = whole_number(head, "head", 0, heads - 1)
            weights = weights[:, chosen : chosen + 1]
        if weights.size > MOST_WEIGHTS:
            if weights.shape[:2] == (1, 1):
                raise InputError(
                    f"One head has {weights.size:,} weights over this text and one answer holds "
                    f"{MOST_WEIGHTS:,}. Use a shorter text."
                )
            raise InputError(
                f"That is {weights.size:,} weights and one answer holds {MOST_WEIGHTS:,}. Ask for "
                "one layer, or for one layer and one head, or use a shorter text."
            )
        return {
            "tokens": [asdict(token) for token in result.tokens],
            "seen": list(result.seen),
            "layers": layers,
            "heads": heads,
            "layer": layer,
            "head": head,
            "weights": weights.round(6).tolist(),
        }

    @_friendly
    async def runs(self) -> list[dict[str, Any]]:
        """The training runs, newest first: id, name, state, progress, last figures."""
        reports = self._reports()
        return await asyncio.to_thread(reports.overview)

    @_friendly
    async def run(self, run: str, offset: int = 0) -> dict[str, Any]:
        """One training run: its state, its reports from number ``offset`` on, what is wrong."""
        reports = self._reports()
        first = whole_number(offset, "offset", 0, 2**53)
        generation = await asyncio.to_thread(reports.generation, run)
        return plain(await asyncio.to_thread(reports.live, run, first, generation))

    def _reports(self) -> Reports:
        if self.reports is None:
            raise InputError("This page was built without training runs.")
        return self.reports


def add(session: Session, reports: Reports | None) -> None:
    """Add the endpoints to the Blocks at hand."""
    endpoints = Endpoints(session, reports)
    for name in ("models", "tokenize", "mask", "fill", "attention", "runs", "run"):
        gr.api(getattr(endpoints, name), api_name=name, concurrency_limit=None)


def _marks(positions: Any, marks: Any) -> tuple[Mark, ...]:
    """Positions to hide and marks with their cases, in one list."""
    if positions is not None and not isinstance(positions, list):
        raise InputError("positions must be a list of whole numbers.")
    hidden = [{"position": position} for position in (positions or [])[: MOST_MARKS + 1]]
    given = marks or []
    if not isinstance(given, list):
        raise InputError("marks must be a list.")
    return clean_marks([*hidden, *given])
