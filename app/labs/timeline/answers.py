"""One text masked again and again: static, a few copies, or afresh. No Gradio in it."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

import core_models as cm
from app.labs.pairs.answers import PRIMER
from app.labs.timeline.formats import layout_and_corpus, pack
from app.serving.ask import MOST_SEED, clean_text, whole_number
from app.serving.pieces import sentence_tokens
from core_models import InputError
from core_models.config import Masking
from core_models.data import documents
from core_models.data.corpus import Corpus
from core_models.data.pairs import segments
from core_models.data.similar import Similar, lexicon, similar_table, similar_words, word_vectors
from core_models.masking import spans as span_masking
from core_models.masking import tokens as masking
from core_models.masking.electra import Drawn as Replaced
from core_models.masking.electra import with_replacement
from core_models.masking.tokens import IGNORED, Masked, generator_for
from core_models.tokenizer import Tokenizer
from viz.svg import Wording
from viz.timeline import Visit

MOST_PIECES = 48
MOST_EPOCHS = 40
MOST_COPIES = 20
REGIMES = ("static", "copies", "dynamic")
LETTERS = {
    masking.UNTOUCHED: "",
    masking.MASK: "M",
    masking.RANDOM: "R",
    masking.KEPT: "K",
    masking.SIMILAR: "S",
}
TABLE = """\
from core_models.data import documents, similar
from core_models.data.corpus import Corpus
from core_models.training.settings import ASSETS

primer = documents.read(sorted((ASSETS / "primer").glob("*.txt")))
corpus = Corpus.encode(primer, tokenizer)
known = [word for word in similar.lexicon(corpus) if tokenizer.unknown_id not in word]
vectors = similar.word_vectors(corpus, known, generator=masking.generator_for(0))
table = similar.similar_table(known, vectors)""".splitlines()
"""Python that finds similar words."""
LENGTH_DRAWS = 4_000
CORPUS_ROWS, CORPUS_LENGTH = 48, 128


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A masking as a family uses it."""

    family: str
    """A published size whose masking it is."""
    label: str
    note: Wording


KINDS: dict[str, Kind] = {
    "uniform": Kind(
        family="bert-base-uncased",
        label="Pieces (BERT, RoBERTa)",
        note=Wording("BERT, RoBERTa: each piece as likely."),
    ),
    "whole_word": Kind(
        family="bert-large-uncased-whole-word-masking",
        label="Whole words (BERT)",
        note=Wording("BERT's whole-word flag: all pieces of a word or none."),
    ),
    "ngram": Kind(
        family="albert-base-v2",
        label="n-grams (ALBERT)",
        note=Wording("ALBERT: up to three words on end."),
    ),
    "windowed_ngram": Kind(
        family="deberta-base",
        label="n-grams in windows (DeBERTa)",
        note=Wording("DeBERTa: one n-gram per window, from the front on."),
    ),
    "span": Kind(
        family="spanbert-base-cased",
        label="Spans (SpanBERT)",
        note=Wording("SpanBERT: up to ten words on end, one draw of the case per span."),
    ),
    "with_replacement": Kind(
        family="electra-base-discriminator",
        label="With replacement (ELECTRA)",
        note=Wording("ELECTRA: a piece may be drawn twice; 85 % [MASK], 15 % left, none random."),
    ),
    "similar_word": Kind(
        family="chinese-macbert-base",
        label="Similar words (MacBERT)",
        note=Wording(
            "MacBERT: up to four words on end give way to similar ones, never to [MASK]; which are "
            "similar is counted in the Primer."
        ),
    ),
}
HISTOGRAMS = ("ngram", "windowed_ngram", "span", "similar_word")


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What the visitor chose."""

    kind: str
    epochs: int
    copies: int
    seed: int


def read_setting(question: Mapping[str, Any]) -> Setting:
    """The setting in an event of the page."""
    kind = question.get("kind", "uniform")
    if not isinstance(kind, str) or kind not in KINDS:
        raise InputError(
            f"The masking is {str(kind)[:40]!r}; it must be one of {', '.join(KINDS)}."
        )
    return Setting(
        kind=kind,
        epochs=whole_number(question.get("epochs", 20), "epochs", 1, MOST_EPOCHS),
        copies=whole_number(question.get("copies", 10), "copies", 1, MOST_COPIES),
        seed=whole_number(question.get("seed", 1), "seed", 0, MOST_SEED),
    )


# --- masks ----------------------------------------------------------------------------------------


def published_shares(kind: str) -> tuple[float, ...]:
    """Shares of the lengths 1, 2, ... in words, adding up to 1."""
    longest = _recipe(kind).longest
    if kind == "span":
        return span_masking.geometric(longest=longest)
    weights = _weights(kind)
    return tuple(weight / sum(weights) for weight in weights)


def _recipe(kind: str) -> Masking:
    return cm.size(KINDS[kind].family).masking


def _weights(kind: str) -> tuple[float, ...]:
    if kind == "similar_word":
        return span_masking.MACBERT_WEIGHTS
    return tuple(1 / n for n in range(1, _recipe(kind).longest + 1))


def draw(
    kind: str,
    tokenizer: Tokenizer,
    rows: tuple[Tensor, Tensor, Tensor, Tensor],
    sources: Sequence[torch.Generator],
) -> Masked:
    """Mask rows as the family of a kind does.

    Args:
        kind: One of `KINDS`.
        tokenizer: Gives [MASK] and the size of the vocabulary.
        rows: Ids, maskable and words, each [B, L], and lengths [B].
        sources: A generator for each row.
    """
    ids, maskable, words, lengths = rows
    recipe = _recipe(kind)
    common: dict[str, Any] = {
        "generator": sources,
        "mask_id": tokenizer.mask_id,
        "rate": recipe.rate,
    }
    if kind == "with_replacement":
        return with_replacement(ids, maskable, lengths=lengths, kept=recipe.split[2], **common)
    common |= {"vocabulary": tokenizer.vocabulary, "split": recipe.split}
    if kind == "span":
        return span_masking.spans(ids, maskable, words, shares=published_shares(kind), **common)
    common["lengths"] = lengths
    if kind == "uniform":
        return masking.uniform(ids, maskable, **common)
    if kind == "whole_word":
        return masking.whole_word(ids, maskable, words, **common)
    common["weights"] = _weights(kind)
    if kind == "similar_word":
        del common["mask_id"]
        return similar_words(ids, maskable, words, table=similar(tokenizer), **common)
    choose = span_masking.ngrams if kind == "ngram" else span_masking.windowed_ngrams
    return choose(ids, maskable, words, **common)


@lru_cache(maxsize=8)
def similar(tokenizer: Tokenizer) -> Similar:
    """Which word of the Primer is most like each of its words, as pieces of a vocabulary."""
    corpus = Corpus.encode(documents.read(sorted(PRIMER.glob("*.txt"))), tokenizer)
    words = [word for word in lexicon(corpus) if tokenizer.unknown_id not in word]
    return similar_table(words, word_vectors(corpus, words, generator=generator_for(0)))


def visits(regime: str, setting: Setting) -> list[int]:
    """Which draw each epoch sees; draw n is made by ``generator_for(seed, n, 0)``."""
    copies = {"static": 1, "copies": setting.copies, "dynamic": setting.epochs}[regime]
    return [epoch % copies for epoch in range(setting.epochs)]


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """Every mask of a text, and what each regime makes of them over the epochs."""

    pieces: list[str]
    """Those that may be hidden."""
    regimes: dict[str, dict[str, Any]]
    """``visits``, one for each epoch, and what :func:`contexts` counts."""
    rate: float
    """Share of the input that is asked."""
    truncated: bool

    def replaced(self) -> list[tuple[str, str]]:
        """Different pieces and the similar ones that stand in their place, as they are drawn."""
        found = {}
        for visit in self.regimes["dynamic"]["visits"]:
            for piece, mark, seen in zip(self.pieces, visit.marks, visit.seen, strict=True):
                if mark == LETTERS[masking.SIMILAR]:
                    found.setdefault(piece, seen)
        return list(found.items())


def describe(tokenizer: Tokenizer, text: str, setting: Setting) -> Drawn:
    """Draw a text's masks and let each regime visit them."""
    encoding = tokenizer.encode(clean_text(text), max_length=MOST_PIECES)
    plain = [position for position, special in enumerate(encoding.special) if not special]
    if not plain:
        raise InputError("This text has no piece to hide. Type a few words.")
    words = [-1 if word is None else word for word in encoding.words]
    one = torch.tensor([encoding.ids, words])
    count = setting.epochs
    ids, groups = one[:, None].expand(2, count, -1)
    rows = (ids, groups >= 0, groups, torch.full((count,), len(encoding)))
    sources = [generator_for(setting.seed, n, 0) for n in range(count)]
    masked = draw(setting.kind, tokenizer, rows, sources)
    drawn = [_visit(masked, n, plain, tokenizer) for n in range(count)]
    tokens = sentence_tokens(encoding, tokenizer)
    regimes = {}
    for regime in REGIMES:
        which = visits(regime, setting)
        counted = contexts(masked, which, len(plain))
        for name in ("asked", "contexts"):
            counted[name] = [counted[name][position] for position in plain]
        regimes[regime] = {"visits": [drawn[n] for n in which], **counted}
    return Drawn(
        pieces=[tokens[n].text.strip() or tokens[n].piece for n in plain],
        regimes=regimes,
        rate=_recipe(setting.kind).rate,
        truncated=encoding.truncated,
    )


def _visit(masked: Masked, n: int, plain: Sequence[int], tokenizer: Tokenizer) -> Visit:
    """One masked input; a piece that was drawn more than once has the number behind its letter."""
    cases, inputs = masked.cases[n].tolist(), masked.inputs[n].tolist()
    times = masked.times[n].tolist() if isinstance(masked, Replaced) else [1] * len(cases)
    marks = [
        LETTERS[case] + (str(t) if t > 1 else "") for case, t in zip(cases, times, strict=True)
    ]
    seen = [tokenizer.display(piece) for piece in inputs]
    return Visit(draw=n, marks=[marks[p] for p in plain], seen=[seen[p] for p in plain])


def contexts(masked: Masked, which: Sequence[int], plain: int) -> dict[str, Any]:
    """What a sequence of visits shows.

    Args:
        masked: Draws [N, L].
        which: The draw that each epoch sees.
        plain: How many pieces may be chosen at all.

    Returns:
        ``asked`` [L], in how many epochs each piece is predicted; ``contexts`` [L], in how many
        different inputs; ``growth`` [epochs], the mean of ``contexts`` over those ``plain`` pieces,
        counted up to each epoch; ``inputs``, how many different inputs there are.
    """
    labels, inputs = masked.labels[list(which)], masked.inputs[list(which)].tolist()
    wanted = labels != IGNORED
    seen: list[set[tuple[int, ...]]] = [set() for _ in range(wanted.shape[1])]
    growth = []
    for row, flags in zip(inputs, wanted.tolist(), strict=True):
        for position in itertools.compress(range(len(flags)), flags):
            seen[position].add(tuple(row))
        growth.append(sum(map(len, seen)) / plain)
    return {
        "asked": wanted.sum(0).tolist(),
        "contexts": [len(each) for each in seen],
        "growth": growth,
        "inputs": len({tuple(row) for row in inputs}),
    }


# --- lengths --------------------------------------------------------------------------------------


def lengths(tokenizer: Tokenizer, kind: str, seed: int) -> dict[str, Any] | None:
    """Lengths in words: published shares, those drawn, and runs found in masked text.

    Runs differ from draws: neighbours touch and merge, budgets cut or skip, text ends.
    """
    if kind not in HISTOGRAMS:
        return None
    shares = published_shares(kind)
    numbers = torch.rand(LENGTH_DRAWS, generator=generator_for(seed), dtype=torch.float64)
    drawn = span_masking.draw_lengths(numbers.tolist(), shares)
    found = _runs(tokenizer, kind, seed)
    most = len(shares)
    return {
        "published": list(shares),
        "drawn": [drawn.count(n) / len(drawn) for n in range(1, most + 1)],
        "found": [found.count(n) / len(found) for n in range(1, most + 1)],
        "longer": sum(n > most for n in found) / len(found),
        "means": {
            "published": sum(n * share for n, share in enumerate(shares, 1)),
            "drawn": sum(drawn) / len(drawn),
            "found": sum(found) / len(found),
        },
        "counts": {"drawn": len(drawn), "found": len(found)},
    }


def _runs(tokenizer: Tokenizer, kind: str, seed: int) -> list[int]:
    """Words of every run of chosen pieces in rows of the Primer."""
    rows = _corpus_rows(tokenizer)
    sources = [generator_for(seed, n) for n in range(len(rows[0]))]
    masked = draw(kind, tokenizer, rows, sources)
    assert isinstance(masked, span_masking.SpanMasked)
    words = rows[2]
    return [len(set(words[row, a:b].tolist())) for row, a, b in masked.spans.tolist()]


@lru_cache(maxsize=8)
def _corpus_rows(tokenizer: Tokenizer) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    layout, corpus = layout_and_corpus(tokenizer)
    examples = itertools.islice(segments(corpus, max_length=CORPUS_LENGTH), CORPUS_ROWS)
    batch = pack(layout, corpus, list(examples))
    return batch.input_ids, batch.maskable, batch.words, batch.lengths


def code_lines(name: str, text: str, setting: Setting) -> str:
    """Python that draws the masks again."""
    recipe = _recipe(setting.kind)
    calls = {
        "uniform": "masking.uniform",
        "whole_word": "masking.whole_word",
        "ngram": "span_masking.ngrams",
        "windowed_ngram": "span_masking.windowed_ngrams",
        "span": "span_masking.spans",
        "with_replacement": "masking_electra.with_replacement",
        "similar_word": "similar.similar_words",
    }
    arguments = f"mask_id=tokenizer.mask_id, rate={recipe.rate}"
    table = []
    if setting.kind == "similar_word":
        arguments = f"table=table, rate={recipe.rate}"
        table = TABLE
    if setting.kind == "with_replacement":
        arguments += f", kept={recipe.split[2]}"
    else:
        arguments += f", vocabulary=tokenizer.vocabulary, split={recipe.split}"
    if setting.kind in ("ngram", "windowed_ngram"):
        arguments += f", weights={_weights(setting.kind)}"
    if setting.kind != "span":
        arguments += ", lengths=torch.tensor([len(encoding)])"
    words = "" if setting.kind in ("uniform", "with_replacement") else ", words"
    return "\n".join(
        [
            "import torch",
            "import core_models as cm",
            "from core_models.masking import electra as masking_electra",
            "from core_models.masking import spans as span_masking, tokens as masking",
            "",
            f"tokenizer = cm.load({name!r}).tokenizer",
            *table,
            f"encoding = tokenizer.encode({text!r}, max_length={MOST_PIECES})",
            "ids = torch.tensor([encoding.ids])",
            "words = torch.tensor([[-1 if w is None else w for w in encoding.words]])",
            f"for epoch in range({setting.epochs}):  # static: 0, copies: "
            f"epoch % {setting.copies}, dynamic: epoch",
            f"    source = masking.generator_for({setting.seed}, epoch, 0)",
            f"    masked = {calls[setting.kind]}(",
            f"        ids, words >= 0{words}, generator=[source], {arguments})",
            "    seen = map(tokenizer.display, masked.inputs[0].tolist())",
            "    print(masked.cases[0].tolist(), *seen)",
        ]
    )
