"""The one service behind the page and its endpoints. No Gradio in it.

It checks what is asked, loads each model once, runs all of them on one thread (see
``batcher``) and remembers results by the content of the question, so nothing is kept per
visitor and handlers stay stateless.
"""

import asyncio
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import torch

import core_models as cm
from app.serving import draws, gpu, model_titles, names
from app.serving.ask import MOST_SEED, Ask, clean_rate, clean_text, whole_number
from app.serving.batcher import Batcher
from app.serving.cache import Cache
from app.serving.cores import Cores
from app.serving.draws import Draw
from app.serving.model_card import card
from app.serving.names import FOLDER_PREFIX, GENERATOR, HUB_PREFIX, RUN_PREFIX, Library, called
from app.serving.opened.library import Job, Opened
from app.serving.opened.policy import Policy
from app.serving.packing import packed
from app.serving.passes import AttentionResult, attention, cost_of, fill
from app.serving.pieces import Sentence, sentence_of
from app.serving.shelf import Mark, Shelf, mark, written
from core_models import InputError, prediction
from core_models.inspection import Inspection, inspect

CACHE_BYTES = 256 << 20
FILL_BYTES = 16 << 20
"""Of candidates, which are small: all that a class asks about one sentence."""
RUN_BYTES = 1 << 30
"""Models of runs in memory at a time; a run may have a dozen snapshots."""


class Session:
    """Models, results and the thread that computes them.

    Args:
        threads: most cores for the model thread (see ``cores``); None leaves torch's own
            choice. Set once per process, as torch keeps one number for all models.
        library: models of training runs, whose names begin with ``run/``; None = there are none.
        opened: models that visitors open, ``hub/...`` and ``folder/...``; None = nobody may.
    """

    def __init__(
        self,
        *,
        threads: int | None = None,
        cache_bytes: int = CACHE_BYTES,
        library: Library | None = None,
        opened: Opened | None = None,
    ) -> None:
        if threads is not None:
            torch.set_num_threads(threads)
        self.cores = Cores()
        self.library = library
        self.opened = opened
        self._infos: dict[str, cm.ModelInfo] = {}
        self._listing = Lock()
        self._read: set[Path] = set()
        self._cards: WeakKeyDictionary[cm.Model, dict[str, Any]] = WeakKeyDictionary()
        self._heads: dict[Path, tuple[Mark, Inspection]] = {}
        # Installed models weigh nothing: all of them stay.
        self._installed = Shelf(self._load_installed, 0, lambda place: 0)
        self._of_runs = Shelf(self._load, RUN_BYTES, written)
        others = opened or Opened(Policy(mode="off"))
        self._of_others = Shelf(self._load_packed, others.policy.memory, others.weigh)
        self._packed: WeakKeyDictionary[cm.Model, cm.Model] = WeakKeyDictionary()
        """What answers for a large model where no gradient is asked."""
        self._numbers: WeakKeyDictionary[cm.Model, int] = WeakKeyDictionary()
        self._counter = count()
        self._cache = Cache(cache_bytes)
        self._fills = Cache(min(cache_bytes, FILL_BYTES))
        self._running: dict[Hashable, Future[Any]] = {}
        self._sought: dict[str, asyncio.Future[cm.Model]] = {}
        self._batcher = Batcher(self._run)

    def close(self) -> None:
        """End the model thread."""
        self._batcher.close()

    # --- models -----------------------------------------------------------------------------

    def models(self) -> list[cm.ModelInfo]:
        """The models that visitors may use."""
        return list((self._infos or self._listed()).values())

    def _listed(self) -> dict[str, cm.ModelInfo]:
        """The installed models by name, looked for anew."""
        with self._listing:
            self._infos = {info.name: info for info in cm.models()}
            return self._infos

    def model(self, name: str) -> cm.Model:
        """A model by name, loaded on first use; InputError for any name that is not listed.

        Of a folder that is written anew, also of an installed model, the new one answers.
        Folders and hub ids are refused: visitors choose from the list, never from the disk.
        """
        return self._model_at(name, self.folder(name))

    async def ready(self, name: str) -> cm.Model:
        """The same; one thread waits for it, and only where it has to be loaded or looked for.

        A class that asks for a model while it is loaded would take all threads otherwise.
        """
        with suppress(OSError):
            if (info := self._infos.get(name)) and (model := self._installed.here(info.folder)):
                return model
        if (found := self._sought.get(name)) is None:
            found = self._sought[name] = asyncio.ensure_future(asyncio.to_thread(self.model, name))
            found.add_done_callback(lambda _: self._sought.pop(name, None))
        return await asyncio.shield(found)

    def loadable(self, name: str) -> str:
        """What ``cm.load`` takes for a model of the picker, for code that people copy."""
        return names.loadable(name, self.library)

    def choices(self) -> list[tuple[str, str]]:
        """Title and name of every model for the picker; those of runs come last."""
        shipped = [(model_titles.title_of(info), info.name) for info in self.models()]
        libraries = [each for each in (self.opened, self.library) if each]
        others = [pair for library in libraries for pair in library.models()]
        return [*shipped, *((self._title(name, title), name) for name, title in others)]

    def open(self, text: object, visitor: str) -> Job:
        """Begin to open a hub id or a folder (:meth:`Opened.begin`); it is loaded once."""
        if self.opened is None:
            raise InputError("This page was built without opening models.")
        return self.opened.begin(text, visitor, self._renew)

    def _renew(self, place: Path) -> None:
        """Load the model of a folder that may have been written anew."""
        self._of_others.renew(place)

    def _title(self, name: str, title: str) -> str:
        """The title of a model and the heads that it has."""
        try:
            found = self.inspected(name)
        except (InputError, OSError):
            return title  # it was replaced or deleted a moment ago
        leftward = found.config is not None and found.config.left_to_right
        return model_titles.with_heads(title, found.heads, leftward=leftward)

    def inspected(self, name: str) -> Inspection:
        """What the headers of a model's files say; InputError or OSError where none is there."""
        place = self.folder(name)
        now, (known, found) = mark(place), self._heads.get(place, ((), None))
        if found is None or known != now:
            found = inspect(place)
            kept = {path: each for path, each in tuple(self._heads.items()) if path.exists()}
            self._heads = kept | {place: (now, found)}
        return found

    def card(self, name: str) -> dict[str, Any]:
        """What the page says about a model (``model_card``), read once for each that is loaded."""
        model = self.model(name)
        if (found := self._cards.get(model)) is not None:
            return found
        folder, info = self.folder(name), self._infos.get(name)
        beside = {"generator": name + GENERATOR if name + GENERATOR in self._infos else None}
        with called(name, folder):
            found = card(model, folder, info.description if info else "") | beside
        self._cards[model] = found
        return found

    def languages(self, *names: str) -> dict[str, str]:
        """Which language each of some models reads, so that the page can say who answers."""
        return {name: self.card(name)["language"] for name in names}

    def folder(self, name: str) -> Path:
        """Where a model of the picker lies; InputError for a name that is not there."""
        if (place := self._place(name)) is not None:
            return place
        if (info := self._infos.get(name) or self._listed().get(name)) is None:
            known = ", ".join(self._infos) or "none is installed"
            raise InputError(f"There is no model “{name[:60]}” here. Known models: {known}.")
        return info.folder

    def number(self, model: cm.Model) -> int:
        """A number of its own for each loaded model: a folder that is written anew has another."""
        return self._numbers.setdefault(model, next(self._counter))

    def has_generator(self, name: str) -> bool:
        """Whether a generator lies beside the model of this name."""
        if (place := self._place(name)) is not None:
            return place.with_name("generator").is_dir()
        return name + GENERATOR in [info.name for info in self.models()]

    def generator_of(self, name: str) -> cm.Model:
        """The generator that was trained beside a discriminator.

        Raises:
            InputError: none lies there, or that of an opened model is larger than one may be.
        """
        if not self.has_generator(name):
            raise InputError(f"No generator lies beside {name[:60]}.")
        if (place := self._place(name)) is not None:
            beside = place.with_name("generator")
            with called(f"{name}/generator", beside):
                return self._shelf(name).get(beside)
        return self.model(name + GENERATOR)

    def _place(self, name: str) -> Path | None:
        """The folder of a model of a run or of somebody else now; None for an installed one."""
        if self.library is not None and name.startswith(RUN_PREFIX):
            return self.library.model_path(name)
        if self.opened is not None and name.startswith((HUB_PREFIX, FOLDER_PREFIX)):
            return self.opened.model_path(name)
        return None

    def _shelf(self, name: str) -> Shelf:
        """Where the model of a name is kept."""
        if name.startswith(RUN_PREFIX):
            return self._of_runs
        opened = name.startswith((HUB_PREFIX, FOLDER_PREFIX))
        return self._of_others if opened else self._installed

    def _model_at(self, name: str, place: Path) -> cm.Model:
        """The model of a name in its folder."""
        shelf = self._shelf(name)
        with called(name, place):
            try:
                model = shelf.get(place)
            except OSError:
                if shelf is not self._of_runs:
                    raise
                raise InputError(
                    "This checkpoint has just been replaced by a newer one. Try again."
                ) from None
        if model.name == place.name:  # which says nothing: a commit, or “model” in every run
            model.name = self._packed.get(model, model).name = name
        return model

    def _load(self, place: Path) -> cm.Model:
        model = cm.load(place)
        self.cores.watch(model)
        return model

    def _load_packed(self, place: Path) -> cm.Model:
        """The same, and a packed copy of a large one; of runs there are too many in memory."""
        model = self._load(place)
        if gpu.ON_GPU is None and gpu.large(model) and (copy := packed(model)) is not model:
            self._packed[model] = copy
        return model

    def _load_installed(self, place: Path) -> cm.Model:
        """The same; one that was written anew is listed anew, as its heads may be others."""
        if place in self._read:
            self._listed()
        self._read.add(place)
        return self._load_packed(place)

    def warm(self, name: str) -> None:
        """Load a model and run it once, so that the first visitor does not wait for that."""
        try:
            self.model(name)
            key = "fill", self.folder(name)
            self._batcher.submit(key, Ask(text="[MASK]", model=name)).result()
        except (InputError, CancelledError):
            return

    # --- questions --------------------------------------------------------------------------

    async def tokenize(self, text: str, model: str) -> Sentence:
        """A text in the pieces of a model."""
        await self.ready(model)
        return await asyncio.to_thread(self.sentence, text, model)

    async def random_mask(
        self, text: str, model: str, *, seed: int, rate: float = 0.15, kind: str = "uniform"
    ) -> Draw:
        """A random masking as in pretraining (see :func:`app.serving.draws.draw`)."""
        text = clean_text(text)
        seed = whole_number(seed, "seed", 0, MOST_SEED)
        rate = clean_rate(rate)
        kind = draws.clean_kind(kind)
        await self.ready(model)
        return await asyncio.to_thread(self._draw, text, model, seed, rate, kind)

    async def fill(self, ask: Ask) -> prediction.FillResult:
        """The model's candidates for every marked position and every [MASK] in the text."""
        result: prediction.FillResult = await self._answer("fill", ask)
        return result

    async def attention(self, ask: Ask) -> AttentionResult:
        """The attention of every head over the sentence with its marks applied."""
        result: AttentionResult = await self._answer("attention", ask)
        return result

    async def compute(self, work: Callable[[], Any], of: cm.Model | None = None) -> Any:
        """Run work of a tab's own on the model thread, without gradients; not remembered.

        Args:
            work: What is to be computed.
            of: The model that it takes; other models go before a large one.
        """
        # A key of its own, so that others wait for this piece of work at most.
        heavy = of is not None and gpu.large(of)
        return await asyncio.wrap_future(self._batcher.submit(("work", work), work, heavy=heavy))

    async def compute_once(
        self, key: Hashable, work: Callable[[], Any], cost: int, of: cm.Model | None = None
    ) -> Any:
        """The same for what is asked again and again, remembered under ``key`` (see `number`).

        Args:
            key: All that the result depends on.
            work: What is to be computed.
            cost: Rough bytes of the result.
            of: As for :meth:`compute`.
        """
        if (known := self._cache.get(key)) is not None:
            return known
        # As in `_answer`: a class that asks at once shares one piece of work.
        if (future := self._running.get(key)) is None:
            heavy = of is not None and gpu.large(of)
            future = self._running[key] = self._batcher.submit(("work", work), work, heavy=heavy)
            future.add_done_callback(partial(self._keep, key, cost, self._cache))
        return await asyncio.shield(asyncio.wrap_future(future))

    # --- inside -----------------------------------------------------------------------------

    async def _answer(self, kind: str, ask: Ask) -> Any:
        """The cached answer, the one being computed for somebody else, or a new one."""
        loaded = await self.ready(ask.model)
        place = self.folder(ask.model)
        # A model changes under its name and in its folder, so its number is part of the key.
        key = (kind, ask, self.number(loaded))
        cache = self._fills if kind == "fill" else self._cache
        if (known := cache.get(key)) is not None:
            return known
        # No await between looking and entering, so that equal questions share one future.
        if (future := self._running.get(key)) is None:
            size = min(loaded.longest, len(ask.text))
            future = self._running[key] = self._batcher.submit(
                (kind, place), ask, size, heavy=gpu.large(loaded)
            )
            future.add_done_callback(partial(self._keep, key, None, cache))
        # One visitor who leaves must not cancel what others wait for.
        return await asyncio.shield(asyncio.wrap_future(future))

    def _keep(self, key: Hashable, cost: int | None, cache: Cache, future: Future[Any]) -> None:
        """Remember a good answer; runs on the model thread when a future is done."""
        if not future.cancelled() and future.exception() is None:
            found = future.result()
            cache.put(key, found, cost_of(found) if cost is None else cost)
        self._running.pop(key, None)

    def _run(self, key: Any, asks: list[Any]) -> Sequence[Any]:
        """Answer asks of one kind for one model, or do work; runs on the model thread only."""
        self.cores.choose_here()
        kind, place = key
        if kind == "work":
            with torch.inference_mode():
                return [work() for work in asks]
        # All asks of a batch are for one place, whatever the name by which it was found.
        model = self._model_at(asks[0].model, place)
        if gpu.ON_GPU is not None and gpu.large(model):
            return gpu.ON_GPU(kind, str(place), self.number(model), asks)
        model = self._packed.get(model, model)
        with torch.inference_mode():
            if kind == "fill":
                return fill(model, asks)
            return [attention(model, ask) for ask in asks]

    def sentence(self, text: str, model: str) -> Sentence:
        """A text in the pieces of a model, in the calling thread."""
        return sentence_of(self.model(model), clean_text(text), model)

    def _draw(self, text: str, model: str, seed: int, rate: float, kind: str) -> Draw:
        loaded = self.model(model)
        sentence = sentence_of(loaded, text, model)
        return draws.draw(loaded, sentence, seed=seed, rate=rate, kind=kind)
