"""What a model puts in place of hidden pieces, through its own pretraining head."""

import math
from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor, nn

from core_models.errors import InputError, by_position, listed, listed_of
from core_models.model import Model
from core_models.prediction.passes import (
    HEAD_ROWS,
    KINDS,
    check_told,
    head_name,
    head_of,
    hidden_at,
    seen_with,
)
from core_models.prediction.results import (
    Candidate,
    FillRequest,
    FillResult,
    Prediction,
    Token,
    Watched,
)
from core_models.tokenizer import Encoding, Tokenizer, check_text

MAX_TOP_K = 100
MAX_MASKS = 512
"""Most positions of one request."""
MAX_WATCHED = 32
"""Most words to look up in one request."""
MAX_WORD_CHARACTERS = 64
_PADDED_TOKENS = 8192
"""Most tokens, padding included, of one forward pass in `fill_many`."""


def fill(
    model: Model,
    text: str,
    *,
    masks: Sequence[int] | None = None,
    top_k: int = 5,
    watch: Sequence[str | int] = (),
    pair: str | None = None,
    replaced: Mapping[int, int] | None = None,
    kept: Sequence[int] = (),
) -> FillResult:
    """What a model puts in place of [MASK]; for the arguments see `FillRequest`.

    Raises:
        InputError: A value is out of range, or the model predicts no pieces.
    """
    masks = () if masks is None else masks  # an array has no truth
    replaced = {} if replaced is None else replaced
    request = FillRequest(text, masks, top_k, watch, pair, replaced, kept)
    (result,) = fill_many(model, [request])
    if isinstance(result, InputError):
        raise result
    return result


def fill_many(model: Model, requests: Sequence[FillRequest]) -> list[FillResult | InputError]:
    """Answer several requests with as few forward passes as their lengths allow.

    Args:
        model: In eval mode, with a head that predicts pieces.
        requests: Any number.

    Returns:
        One entry per request, in order: a result, or the error of that request alone.

    Raises:
        InputError: The model cannot answer at all.
    """
    head = head_of(model)
    requests = listed_of(FillRequest, requests, "requests")
    results: list[FillResult | InputError | None] = [None] * len(requests)
    questions: list[tuple[int, Question]] = []
    for number, request in enumerate(requests):
        try:
            questions.append((number, Question(model, request)))
        except InputError as error:
            results[number] = error
    questions.sort(key=lambda entry: len(entry[1].seen))
    for chunk in _chunks(questions):
        answers = _answer(model, head, [question for _, question in chunk])
        for (number, _), answer in zip(chunk, answers, strict=True):
            results[number] = answer
    return [result for result in results if result is not None]


class Question:
    """A checked request with the pieces that the model will see."""

    def __init__(self, model: Model, request: FillRequest) -> None:
        self.top_k = whole(request.top_k, "top_k", 1, MAX_TOP_K)
        self.watched = [(w, _pieces_of(model.tokenizer, w)) for w in _words(request.watch)]
        self.wanted = [ids[0] for _, ids in self.watched if len(ids) == 1]
        pair = request.pair
        texts = request.text if pair is None else (request.text, pair)
        self.encoding = encoding = model.encode([texts])[0]
        tokenizer = model.tokenizer
        mask_id = tokenizer.mask_id
        self.cases = {p: "mask" for p, index in enumerate(encoding.ids) if index == mask_id}
        replaced = by_position(request.replaced, "replaced")
        groups = {
            "mask": listed(request.masks, "masks"),
            "random": [*replaced],
            "kept": listed(request.kept, "kept"),
        }
        count = sum(len(positions) for positions in groups.values())
        if count > MAX_MASKS:
            raise InputError(f"{count:,} positions are too many; at most {MAX_MASKS} go.")
        asked = {_position(p, encoding): c for c, positions in groups.items() for p in positions}
        if len(asked) < count:
            raise InputError("A position is asked for twice.")
        self.cases |= asked
        shown = sorted(set(asked.values()) - {"mask"})
        if shown and KINDS[head_name(model)] == "order":
            raise InputError(
                f"{model.name or 'This model'} predicts in an order and never from what stands at "
                f"the place itself, so a position cannot be {' or '.join(shown)}; hide it instead."
            )
        changes = {p: mask_id for p, case in self.cases.items() if case == "mask"}
        for position, index in replaced.items():
            changes[position] = whole(index, "The piece id", 0, tokenizer.vocabulary - 1)
        self.positions = sorted(self.cases)
        if self.positions:
            check_told(model, self.positions[0])
        self.seen = seen_with(encoding, changes)


def _answer(model: Model, head: nn.Module, questions: list[Question]) -> list[FillResult]:
    """Results of questions that share one forward pass."""
    places = [(row, p) for row, question in enumerate(questions) for p in question.positions]
    predictions: list[list[Prediction]] = [[] for _ in questions]
    if places:
        with torch.inference_mode():
            hidden = hidden_at(model, [question.seen for question in questions], places)
            for start in range(0, len(places), HEAD_ROWS):
                rows = [(questions[r], p, r) for r, p in places[start : start + HEAD_ROWS]]
                logs = head(hidden[start : start + HEAD_ROWS]).float().log_softmax(-1)
                found = read_rows(model.tokenizer, [(q, p) for q, p, _ in rows], logs)
                for (_, _, row), prediction in zip(rows, found, strict=True):
                    predictions[row].append(prediction)
    return [
        FillResult(
            text=question.encoding.text,
            pair=question.encoding.pair,
            head=head_name(model),
            tokens=_tokens(model.tokenizer, question),
            predictions=found,
            truncated=question.encoding.truncated,
        )
        for question, found in zip(questions, predictions, strict=True)
    ]


def read_rows(
    tokenizer: Tokenizer, asked: Sequence[tuple[Question, int]], logs: Tensor
) -> list[Prediction]:
    """Read rows of log-probabilities.

    Args:
        tokenizer: Names the pieces.
        asked: Question and position of each row, N of them.
        logs: [N, V']; V' exceeds the tokenizer's V where a checkpoint's table is padded.
    """
    known = logs[:, : tokenizer.vocabulary]
    entropies = (-(logs.exp() * logs).sum(1)).tolist()
    top = known.topk(min(known.shape[1], max(question.top_k for question, _ in asked)), dim=1)
    extras = [[q.encoding.ids[p], *q.wanted] for q, p in asked]
    widest = max(map(len, extras))
    columns = torch.tensor([e + [0] * (widest - len(e)) for e in extras], device=known.device)
    values = known.gather(1, columns)
    ranks = [(known > values[:, k : k + 1]).sum(1) + 1 for k in range(widest)]
    rows = zip(
        asked,
        entropies,
        zip(top.indices.tolist(), top.values.tolist(), strict=True),
        zip(extras, values.tolist(), torch.stack(ranks, 1).tolist(), strict=True),
        strict=True,
    )
    return [_prediction(tokenizer, *ask, *rest) for ask, *rest in rows]


def _prediction(
    tokenizer: Tokenizer,
    question: Question,
    position: int,
    entropy: float,
    top: tuple[list[int], list[float]],
    extra: tuple[list[int], list[float], list[int]],
) -> Prediction:
    """One position: ids and log-probabilities of the best, and of the original and the watched."""
    best = list(zip(*top, strict=True))[: question.top_k]
    values = [value for _, value in best]
    candidates = [_candidate(tokenizer, i, v, values.index(v) + 1) for i, v in best]
    # Rows share one table of extra columns; what lies beyond this row's own ids is padding.
    table = {
        index: _candidate(tokenizer, index, value, rank)
        for index, value, rank in zip(*extra, strict=False)
    }
    original = question.encoding.ids[position]
    return Prediction(
        position=position,
        case=question.cases[position],
        original=None if original == tokenizer.mask_id else table[original],
        candidates=candidates,
        entropy=max(entropy, 0.0),  # in this order NaN, of a broken model, stays NaN
        watched=[_watched(tokenizer, word, ids, table) for word, ids in question.watched],
    )


def _candidate(tokenizer: Tokenizer, index: int, value: float, rank: int) -> Candidate:
    return Candidate(
        id=index,
        piece=tokenizer.piece(index),
        display=tokenizer.display(index),
        continues=not tokenizer.starts_word(index),
        probability=math.exp(value),
        rank=rank,
    )


def _pieces_of(tokenizer: Tokenizer, word: str | int) -> list[int]:
    """The ids of a word, of a raw piece such as "##ing", or an id itself."""
    if isinstance(word, int):
        return [whole(word, "The piece id", 0, tokenizer.vocabulary - 1)]
    ids = tokenizer.pieces_of(word)
    raw = tokenizer.id(word)
    return [raw] if len(ids) != 1 and raw is not None else ids


def _watched(
    tokenizer: Tokenizer, word: str | int, ids: list[int], table: Mapping[int, Candidate]
) -> Watched:
    word = tokenizer.piece(word) if isinstance(word, int) else word
    pieces = tuple(tokenizer.display(index) for index in ids)
    if not ids:
        return Watched(word, pieces, f"“{word}” holds no character that the model knows.")
    if tokenizer.unknown_id in ids:
        return Watched(word, pieces, f"“{word}” is not in the model's vocabulary.")
    if len(ids) > 1:
        return Watched(
            word,
            pieces,
            f"“{word}” is {len(ids)} pieces here ({' · '.join(pieces)}); one gap holds one piece, "
            "so it has no probability of its own.",
        )
    found = table[ids[0]]
    return Watched(
        word=word,
        pieces=pieces,
        id=found.id,
        piece=found.piece,
        display=found.display,
        probability=found.probability,
        rank=found.rank,
    )


def _tokens(tokenizer: Tokenizer, question: Question) -> list[Token]:
    encoding, seen = question.encoding, question.seen
    return [
        Token(
            position=position,
            id=index,
            piece=encoding.pieces[position],
            display=tokenizer.display(index),
            start=encoding.offsets[position][0],
            end=encoding.offsets[position][1],
            word=encoding.words[position],
            special=encoding.special[position],
            masked=seen.ids[position] == tokenizer.mask_id,
        )
        for position, index in enumerate(encoding.ids)
    ]


def _chunks(
    questions: list[tuple[int, Question]],
) -> Iterator[list[tuple[int, Question]]]:
    """Parts of a list sorted by length, each small enough for one padded pass."""
    chunk: list[tuple[int, Question]] = []
    for entry in questions:
        if chunk and (len(chunk) + 1) * len(entry[1].seen) > _PADDED_TOKENS:
            yield chunk
            chunk = []
        chunk.append(entry)
    if chunk:
        yield chunk


def whole(value: object, name: str, least: int, most: int) -> int:
    """A whole number in a range; InputError for anything else."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        shown = repr(value)[:40]
        raise InputError(f"{name} is {shown}; it must be a whole number from {least} to {most}.")
    return value


def within(value: object, least: float, most: float) -> bool:
    """Whether a value is a number in a range."""
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most


def _position(value: object, encoding: Encoding) -> int:
    position = whole(value, "A position", 0, len(encoding) - 1)
    if encoding.special[position]:
        raise InputError(
            f"Position {position} is {encoding.pieces[position]}, which stands for no word; choose "
            "a word."
        )
    return position


def _words(words: Sequence[str | int]) -> list[str | int]:
    if isinstance(words, str):
        raise InputError("watch takes a list of words, not one string.")
    words = listed(words, "watch")
    if len(words) > MAX_WATCHED:
        raise InputError(f"{len(words)} words to look up are too many; at most {MAX_WATCHED} go.")
    for word in words:
        if isinstance(word, int):
            continue
        if isinstance(word, str) and not word.strip():
            raise InputError("watch holds an empty word; write one, or leave it out.")
        if len(check_text(word)) > MAX_WORD_CHARACTERS:
            raise InputError(
                f"“{word[:20]}…” has {len(word):,} characters; a word may have "
                f"{MAX_WORD_CHARACTERS}."
            )
    return [word if isinstance(word, int) else word.strip() for word in words]
