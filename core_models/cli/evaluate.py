"""``evaluate``: how good a pretrained model is on held-out text and on minimal pairs."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core_models.cli.arguments import add_json, add_model, positive, seed
from core_models.cli.output import Output
from core_models.errors import InputError

if TYPE_CHECKING:
    from core_models.model import Model

HELP = """Measure a pretrained model: hidden words, minimal pairs, facts, pairs of texts, forgeries.

Words: whole words of held-out text are hidden one by one; accuracy and perplexity per word can be
compared between vocabularies. Pairs: which of two sentences is likelier (pseudo-log-likelihood).
Capitals: "The capital of X is [MASK]." for the countries of the Atlas. Plain sentences: is a word
that fits first, or in the first five? Pairs of texts: what a next-sentence or sentence-order head
says of neighbours, strangers and swapped ones. Forgeries: how well a discriminator catches its
generator (needs --generator). Attention: its entropy by layer in plain sentences; near 0, every
head looks at one token and learns no more."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    add_model(parser)
    parser.add_argument(
        "--text",
        nargs="+",
        type=Path,
        default=[],
        metavar="FILE",
        help="held-out text (.txt or .txt.xz), one sentence a line",
    )
    parser.add_argument("--generator", metavar="MODEL", help="generator of a discriminator")
    parser.add_argument("--words", type=positive, default=2000, metavar="N", help="(default: 2000)")
    parser.add_argument(
        "--sentences",
        type=positive,
        default=400,
        metavar="N",
        help="sentences for the forgeries, from the whole text, or up to twice as many "
        "(default: 400)",
    )
    parser.add_argument("--seed", type=seed, default=0, help="of the words that are hidden")
    add_json(parser)


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Measure whatever the model has heads for."""
    import core_models as cm
    from core_models.data import documents
    from core_models.evaluation import evaluate_attention, evaluate_forgeries
    from core_models.evaluation.attention import plain_texts
    from core_models.evaluation.forgeries import choose_sentences
    from core_models.evaluation.language import language_of

    model = cm.load(arguments.model)
    texts = list(documents.read(arguments.text))
    sentences = [sentence for document in texts for sentence in document]
    if arguments.text and not sentences:
        raise InputError("--text holds no sentence; give files with some text, or leave it out.")
    generator = _generator(arguments.generator, model, sentences)  # all else takes minutes
    language = language_of(model.tokenizer)
    found: dict[str, Any] = {"model": model.name}
    found |= _predicted(arguments, model, language, sentences)
    found |= _text_pairs(arguments, model, texts)
    if generator is not None:
        chosen = choose_sentences(sentences, arguments.sentences)
        found["forgeries"] = asdict(
            evaluate_forgeries(generator, model, chosen, seed=arguments.seed)
        )
    if len(found) == 1:
        hint = "measure a pretrained model such as bert-mini."
        if "replaced_token" in model.heads:
            hint = "give its --generator and a --text to measure what it catches."
        raise InputError(
            f"{model.name} predicts no pieces (heads: {', '.join(model.heads) or 'none'}); {hint}"
        )
    try:
        found["attention"] = asdict(evaluate_attention(model, plain_texts(language)))
    except InputError as error:
        sys.stderr.write(f"note: {error} Attention is left out.\n")
    if arguments.json:
        output.json(found)
        return 0
    output.table([[name, value] for name, value in _rows(found)], right=(1,))
    return 0


def _generator(name: str | None, model: "Model", sentences: Sequence[str]) -> "Model | None":
    """The generator, where there is something to forge and somebody to judge it."""
    import core_models as cm
    from core_models.prediction.passes import head_name

    if name is None:
        return None
    if not sentences:
        raise InputError("--generator needs --text: forgeries are made in held-out text.")
    if "replaced_token" not in model.heads:
        raise InputError(
            f"{model.name} has no replaced-token head, so it judges no --generator; leave that "
            "out, or give a discriminator such as electra-mini as --model."
        )
    generator = cm.load(name)
    head_name(generator)
    return generator


def _predicted(
    arguments: argparse.Namespace, model: "Model", language: str, sentences: Sequence[str]
) -> dict[str, Any]:
    """What a model that predicts pieces makes of sentences with a gap, and of pairs of them."""
    from core_models.evaluation import (
        evaluate_capitals,
        evaluate_minimal_pairs,
        evaluate_plain_sentences,
        evaluate_words,
    )
    from core_models.evaluation.minimal_pairs import SHIPPED, read_pairs
    from core_models.evaluation.plain import read_plain_sentences
    from core_models.evaluation.words import choose_words
    from core_models.prediction.passes import KINDS

    if not set(KINDS) & set(model.heads):
        return {}
    words = []
    if sentences:  # chosen before all else takes minutes: there may be none
        words = choose_words(sentences, most=arguments.words, seed=arguments.seed)
    found: dict[str, Any] = {}
    plain = read_plain_sentences(language)
    found["plain_sentences"] = asdict(evaluate_plain_sentences(model, plain))
    if language == "en":
        try:
            found["capitals"] = asdict(evaluate_capitals(model))
        except InputError as error:
            sys.stderr.write(f"note: {error} Capitals are left out.\n")
        found["minimal_pairs"] = asdict(evaluate_minimal_pairs(model, read_pairs(SHIPPED)))
    else:
        sys.stderr.write("note: minimal pairs and capitals are English; left out.\n")
    if words:
        found["words"] = asdict(evaluate_words(model, words))
    return found


def _text_pairs(
    arguments: argparse.Namespace, model: "Model", texts: Sequence[Sequence[str]]
) -> dict[str, Any]:
    """What a next-sentence or sentence-order head makes of held-out documents."""
    from core_models.evaluation import evaluate_text_pairs
    from core_models.evaluation.text_pairs import choose_text_pairs
    from core_models.prediction.judge import PAIR_HEADS

    if not texts or not set(PAIR_HEADS) & set(model.heads):
        return {}
    try:
        pairs = choose_text_pairs(texts, seed=arguments.seed)
    except InputError as error:
        sys.stderr.write(f"note: {error} They are left out.\n")
        return {}
    return {"text_pairs": asdict(evaluate_text_pairs(model, pairs))}


def _rows(values: dict[str, Any], indent: str = "") -> Iterator[tuple[str, str]]:
    """Names and figures, nested ones indented below the name of their group."""
    for name, value in values.items():
        label = indent + name.replace("_", " ")
        if isinstance(value, dict):
            yield label, ""
            yield from _rows(value, indent + "  ")
        elif isinstance(value, tuple):
            yield label, ", ".join(f"{each:.2f}" for each in value)
        else:
            yield label, f"{value:.4g}" if isinstance(value, float) else str(value)
