"""Popular statements about the family, each with a measurement that judges it. No Gradio in it."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from app.claims import albert as claims_albert
from app.claims import bert as claims_bert
from app.claims import deberta as claims_deberta
from app.claims import electra as claims_electra
from app.claims import modern as claims_modern
from app.claims import pairs as claims_pairs
from app.claims import roberta as claims_roberta
from app.claims import spans as claims_spans
from app.claims import xlnet as claims_xlnet
from app.claims.bench import Bench, answering
from app.claims.card import UNJUDGED, Claim, Number
from app.serving.ask import clean_name, whole_number
from app.serving.cache import Cache
from app.serving.session import Session
from core_models import InputError

CLAIMS: dict[str, Claim] = {
    claim.name: claim
    for module in (
        claims_bert,
        claims_pairs,
        claims_roberta,
        claims_albert,
        claims_spans,
        claims_xlnet,
        claims_electra,
        claims_deberta,
        claims_modern,
    )
    for claim in module.CLAIMS
}
FAMILIES = ("BERT", "RoBERTa", "ALBERT", "SpanBERT", "XLNet", "ELECTRA", "DeBERTa")
FAMILIES += ("DistilBERT", "ModernBERT", "EuroBERT")
MOST_SEED = 9_999
MOST_KEPT = 2_000
"""Results that are remembered."""
MOST_WAITING = 50
"""Different measurements that wait for their turn."""
PATIENCE = 30.0
"""Seconds a visitor waits; the measurement goes on and its result is kept."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """What one run of a card found."""

    claim: Claim
    seed: int
    model: str | None
    """Installed model that was used."""
    numbers: tuple[Number, ...]
    verdict: str
    """One of `app.claims.card.VERDICTS`, or `UNJUDGED`."""
    doubt: str = ""
    """Why there is no verdict."""


def read_run(question: Mapping[str, Any]) -> tuple[Claim, int, str]:
    """Card, seed and chosen model in an event of the page."""
    name = question.get("name")
    if not isinstance(name, str) or name not in CLAIMS:
        raise InputError(f"There is no claim {str(name)[:60]!r} here. Reload the page.")
    seed = whole_number(question.get("seed", 0), "seed", 0, MOST_SEED)
    chosen = question.get("model")
    return CLAIMS[name], seed, clean_name(chosen) if chosen else ""


def measure(claim: Claim, bench: Bench) -> Result:
    """Run a card's measurement and let its rule judge the numbers."""
    numbers = tuple(claim.measure(bench))
    values = {number.key: number.value for number in numbers}
    doubt = claim.doubt(bench, values) if claim.doubt else ""
    verdict = UNJUDGED if doubt else claim.rule.judge(values)
    model = answering(bench.models, bench.chosen, claim.head) if claim.head else None
    return Result(
        claim=claim, seed=bench.seed, model=model, numbers=numbers, verdict=verdict, doubt=doubt
    )


class Desk:
    """Runs measurements: one at a time on this machine, one per visitor, each of them once.

    They run beside the event loop, and their questions to installed models on the model thread.
    """

    def __init__(self, session: Session, patience: float = PATIENCE) -> None:
        self.session, self.patience = session, patience
        self._cache = Cache(MOST_KEPT)
        self._running: dict[tuple[str, int, str | None], asyncio.Task[Result]] = {}
        self._busy: set[str] = set()
        # Who waits in a thread for its turn takes that thread from all other labs.
        self._turn = asyncio.Lock()

    def key(self, claim: Claim, seed: int, chosen: str) -> tuple[str, int, str | None]:
        """What a result depends on."""
        model = answering(self.session, chosen, claim.head) if claim.head else None
        return claim.name, seed if claim.drawn else 0, model

    def found(self, claim: Claim, seed: int, chosen: str) -> Result | None:
        """What was measured before."""
        found: Result | None = self._cache.get(self.key(claim, seed, chosen))
        return found

    async def run(self, visitor: str, claim: Claim, seed: int, chosen: str) -> Result:
        """The result of a card, remembered or measured now.

        Raises:
            InputError: no installed model can answer, the visitor's former measurement still runs,
                too many others wait, or this one takes too long.
        """
        if (found := self.found(claim, seed, chosen)) is not None:
            return found
        if visitor in self._busy:
            raise InputError(
                "Another measurement of yours is still running. Wait until it is done."
            )
        key = self.key(claim, seed, chosen)
        if key not in self._running and len(self._running) > MOST_WAITING:
            raise InputError(
                f"{MOST_WAITING} other measurements wait for their turn. Try again in a minute."
            )
        self._busy.add(visitor)
        try:
            if (task := self._running.get(key)) is None:
                task = asyncio.ensure_future(self._measure(claim, key[1], chosen))
                self._running[key] = task
                task.add_done_callback(lambda done: self._keep(key, done))
            return await asyncio.wait_for(asyncio.shield(task), self.patience)
        except TimeoutError:
            raise InputError(
                f"The measurement is not done after {self.patience:g} seconds, because the machine "
                "is busy. It goes on; ask again in a moment."
            ) from None
        finally:
            self._busy.discard(visitor)

    async def _measure(self, claim: Claim, seed: int, chosen: str) -> Result:
        loop = asyncio.get_running_loop()

        def ask(work: Callable[[], Any]) -> Any:
            return asyncio.run_coroutine_threadsafe(self.session.compute(work), loop).result()

        def alone() -> Result:  # its time begins in its thread
            return measure(claim, Bench(self.session, chosen, seed, ask=ask))

        async with self._turn:
            return await asyncio.to_thread(alone)

    def _keep(self, key: tuple[str, int, str | None], task: asyncio.Task[Result]) -> None:
        if not task.cancelled() and task.exception() is None:
            self._cache.put(key, task.result(), 1)
        self._running.pop(key, None)


def code_lines(claim: Claim, seed: int, model: str | None = None) -> str:
    """Python that runs a card's measurement without the page.

    Args:
        claim: The card.
        seed: Of everything that is drawn.
        model: Installed model that answers; None where none is asked.
    """
    session = f"Session(), {model!r}" if model else "Session()"
    return "\n".join(
        [
            "from app.claims.desk import CLAIMS, measure",
            "from app.claims.bench import Bench",
            "from app.serving.session import Session",
            "",
            f"result = measure(CLAIMS[{claim.name!r}], Bench({session}, seed={seed}))",
            "print(result.verdict, {n.key: n.value for n in result.numbers})",
            "",
            "# The same from the core:",
            claim.code,
        ]
    )
