"""The open places of one sentence, and what a model says of every way to fill them.

:mod:`core_models.prediction.joint` says what the ways are.
"""

import math
from collections.abc import Generator, Iterator, Mapping, Sequence
from functools import cached_property

import torch
from torch import Tensor

from core_models.errors import InputError, listed
from core_models.model import Model
from core_models.prediction.fill import Question, whole
from core_models.prediction.passes import HEAD_ROWS, head_of, hidden_at, seen_with
from core_models.prediction.results import Choice, Filling, FillRequest

WAYS = ("independent", "left_to_right", "most_confident", "beam")
MAX_GAPS = 16
MAX_WIDTH = 16
PADDED_TOKENS = 8192
"""Most tokens, padding included, of one forward pass."""

GIVEN = "given"
"""The way of a filling that is only scored."""

Filled = Mapping[int, int]
"""Position -> piece id."""
Asked = list[tuple[Filled, int]]
"""What is in place, and the position that is asked for."""
Paths = Generator[Asked, Tensor, list[dict[int, int]]]
"""Asks for log-probabilities [N, V], again and again, until the fillings of its way are known."""


class Gaps:
    """The open places of one sentence, to be filled in several ways.

    The ways ask about many of the same beginnings; each is read by the model once, and all that one
    question needs in one forward pass.
    """

    def __init__(
        self,
        model: Model,
        text: str,
        masks: Sequence[int] = (),
        hidden: Sequence[int] = (),
        *,
        every: bool = True,
    ) -> None:
        """Open the places; arguments and errors are those of `fill_jointly`.

        ``every``: whether a [MASK] in the text is a gap, too.
        """
        self.model, self.head = model, head_of(model)
        open_, apart = listed(masks, "masks"), listed(hidden, "hidden")
        question = Question(model, FillRequest(text, [*open_, *apart]))
        self.seen = question.seen
        wanted = question.positions if every else sorted(open_)
        self.positions = [p for p in wanted if p not in set(apart)]
        if not self.positions:
            raise InputError("There is no gap to fill; hide a word or write [MASK].")
        if len(self.positions) > MAX_GAPS:
            raise InputError(
                f"{len(self.positions)} gaps are too many to fill together; at most {MAX_GAPS} go."
            )
        tokenizer = model.tokenizer
        self.barred = [*tokenizer.special_ids, tokenizer.mask_id, tokenizer.unknown_id]
        self._known: dict[tuple[frozenset[tuple[int, int]], int], Tensor] = {}

    def fill(self, way: str = "left_to_right", *, width: int = 4) -> list[Filling]:
        """As `fill_jointly`."""
        *_, found = self.rounds((way,), width=width)
        assert found is not None
        return found[way]

    def rounds(
        self, ways: Sequence[str] = WAYS, *, width: int = 4, given: Filled | None = None
    ) -> Iterator[dict[str, list[Filling]] | None]:
        """Several ways side by side: what all of them ask next goes through the model together.

        Args:
            ways: Of `WAYS`.
            width: As `fill_jointly`.
            given: A filling to score beside them, under the name of `GIVEN`.

        Yields:
            None after each forward pass, so that other work has its turn; at last the fillings by
            way.

        Raises:
            InputError: As `fill_jointly`.
        """
        for way in ways:
            if way not in WAYS:
                raise InputError(f"way is {str(way)[:40]!r}; it must be one of {', '.join(WAYS)}.")
        whole(width, "width", 1, MAX_WIDTH)
        running = {way: self._paths(way, width) for way in ways}
        if given is not None:
            self._check(given, self.positions)
            running[GIVEN] = self._given(self._ordered(given))
        asked = {way: next(paths) for way, paths in running.items()}
        ended: dict[str, list[dict[int, int]]] = {}
        while asked:
            self._read([pair for pairs in asked.values() for pair in pairs])
            yield None
            for way, pairs in list(asked.items()):
                try:
                    asked[way] = running[way].send(self.logs(pairs))
                except StopIteration as end:
                    ended[way] = end.value
                    del asked[way]
        paths = [self._ordered(path) for found in ended.values() for path in found]
        self._read([pair for path in paths for pair in self._beginnings(path)])
        yield {way: [self.filling(way, path) for path in ended[way]] for way in running}

    def score(self, pieces: Filled, *, order: Sequence[int] | None = None) -> Filling:
        """As `score_filling`."""
        chosen = self.positions if order is None else listed(order, "order")
        self._check(pieces, chosen)
        return self.filling(GIVEN, {position: pieces[position] for position in chosen})

    def _check(self, pieces: Filled, order: Sequence[int]) -> None:
        for index in pieces.values():
            self.model.tokenizer.piece(index)
        once = len(order) == len(self.positions) and set(order) == set(self.positions)
        if not once or pieces.keys() != set(order):
            raise InputError(
                f"order is {order}; it must name each of the gaps {self.positions} exactly once."
            )

    def logs(self, asked: Sequence[tuple[Filled, int]]) -> Tensor:
        """Log-probabilities [N, V] at a position of each state."""
        self._read(asked)
        return torch.stack([self._known[_key(state, place)] for state, place in asked])

    def _read(self, asked: Sequence[tuple[Filled, int]]) -> None:
        """Let the model read those of the states that it has not read yet."""
        new: dict[frozenset[tuple[int, int]], tuple[Filled, list[int]]] = {}
        every = [] if self._known else [(dict[int, int](), place) for place in self.positions]
        for state, place in [*every, *asked]:
            key = _key(state, place)
            if key not in self._known:
                places = new.setdefault(key[0], (state, []))[1]
                places += [place] * (place not in places)
        if not new:
            return
        states = [state for state, _ in new.values()]
        pairs = [(row, place) for row, (_, places) in enumerate(new.values()) for place in places]
        keys = [(key, place) for key, (_, places) in new.items() for place in places]
        self._known.update(zip(keys, self._computed(states, pairs), strict=True))

    def _computed(self, states: Sequence[Filled], places: Sequence[tuple[int, int]]) -> Tensor:
        """Log-probabilities [N, V] at (state, position) places, the states in order."""
        encodings = [seen_with(self.seen, state) for state in states]
        rows = max(1, PADDED_TOKENS // len(self.seen))
        parts = []
        with torch.inference_mode():
            for start in range(0, len(encodings), rows):
                inside = [(r - start, p) for r, p in places if start <= r < start + rows]
                hidden = hidden_at(self.model, encodings[start : start + rows], inside)
                parts += [
                    self.head(part).float().log_softmax(-1) for part in hidden.split(HEAD_ROWS)
                ]
        return torch.cat(parts)[:, : self.model.tokenizer.vocabulary]

    def choosable(self, logs: Tensor) -> Tensor:
        """The same with pieces that stand for no word at minus infinity."""
        return logs.index_fill(1, torch.tensor(self.barred, device=logs.device), -math.inf)

    @cached_property
    def open(self) -> Tensor:
        """Log-probabilities [n, V] of every gap while all are open."""
        return self.logs([({}, p) for p in self.positions])

    def _paths(self, way: str, width: int) -> Paths:
        if way == "independent":
            return self._independent()
        if way == "most_confident":
            return self._most_confident()
        return self._beam(width if way == "beam" else 1)

    def _given(self, path: dict[int, int]) -> Paths:
        yield self._beginnings(path)
        return [path]

    def _independent(self) -> Paths:
        """Every gap by itself."""
        logs = yield [({}, p) for p in self.positions]
        best = self.choosable(logs).argmax(1)
        return [dict(zip(self.positions, best.tolist(), strict=True))]

    def _most_confident(self) -> Paths:
        """Always the gap that is surest next; of equally sure ones the leftmost."""
        filled: dict[int, int] = {}
        while len(filled) < len(self.positions):
            left = [p for p in self.positions if p not in filled]
            logs = yield [(filled, p) for p in left]
            best = self.choosable(logs).max(1)
            row = int(best.values.argmax())
            filled = {**filled, left[row]: int(best.indices[row])}
        return [filled]

    def _beam(self, width: int) -> Paths:
        """The best beginnings, gap by gap from the left."""
        states: list[dict[int, int]] = [{}]
        totals = torch.zeros(1, dtype=torch.float64)
        for position in self.positions:
            logs = yield [(state, position) for state in states]
            sums = totals[:, None] + self.choosable(logs).double().cpu()
            best = sums.flatten().topk(min(width, int(sums.isfinite().sum())))
            rows, pieces = best.indices // sums.shape[1], best.indices % sums.shape[1]
            states = [
                {**states[row], position: piece}
                for row, piece in zip(rows.tolist(), pieces.tolist(), strict=True)
            ]
            totals = best.values
        return states

    def chain(self, path: Filled) -> list[float]:
        """Log-probability of each piece, given those before it on the path."""
        logs = self.logs(self._beginnings(path))
        return [float(row[index]) for row, index in zip(logs, path.values(), strict=True)]

    def _beginnings(self, path: Filled) -> Asked:
        """What has been filled before each position of a path, and the position."""
        order = list(path)
        return [({p: path[p] for p in order[:done]}, order[done]) for done in range(len(order))]

    def _ordered(self, path: Filled) -> dict[int, int]:
        """The same pieces from left to right."""
        return {position: path[position] for position in self.positions}

    def filling(self, way: str, path: Filled) -> Filling:
        """A filling, given in the order in which it was made, with its three sums."""
        ordered = self._ordered(path)
        alone = [float(row[i]) for row, i in zip(self.open, ordered.values(), strict=True)]
        chained = self.chain(ordered)
        if way == "independent":
            steps = alone
        else:
            steps = chained if list(path) == self.positions else self.chain(path)
        tokenizer = self.model.tokenizer
        choices = [
            Choice(
                position=position,
                id=index,
                piece=tokenizer.piece(index),
                display=tokenizer.display(index),
                continues=not tokenizer.starts_word(index),
                log_probability=step,
            )
            for (position, index), step in zip(path.items(), steps, strict=True)
        ]
        total, apart, chain = (math.fsum(each) for each in (steps, alone, chained))
        return Filling(way, choices, total, apart, chain, self.seen.truncated)


def _key(state: Filled, place: int) -> tuple[frozenset[tuple[int, int]], int]:
    return frozenset(state.items()), place
