"""What gives away the order of two texts without a look at it, and what a language model knows.

``python -m benchmarks.order_pairs --held-out FILE [--training FILE]`` prints how often the longer
part stands second in the pairs that ALBERT's procedure makes of held-out text, with chunks of full
and of random shorter lengths, and in pairs of two and two sentences; and how often a causal model,
which was never asked about order, finds these likelier as they stand than the other way round. With
training text it also fits a logistic regression on the words of such pairs. Files: a sentence a
line, a blank line between documents, as ``python -m zoo build`` leaves them in ``runs/zoo/texts``.
"""

import argparse
import random
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix, hstack
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression

import core_models as cm
from core_models.data.corpus import Corpus
from core_models.data.order_pairs import SWAPPED, sentence_order
from core_models.data.sources import read_documents

Pair = tuple[str, str]
_PASSES = 4
_MOST = 80_000
"""Pairs of the training text that the regression learns from."""
_FIRST_WORDS = 4
_TOKEN = r"(?u)\w+|[^\w\s]"


def longer_is_second(corpus: Corpus, short: float, seeds: int = _PASSES) -> float:
    """Share of the pairs of ALBERT's procedure whose order the rule "longer, so second" tells."""
    told = [
        (b - a > d - c) == (label == SWAPPED)
        for seed in range(seeds)
        for a, b, c, d, label, _ in sentence_order(
            corpus,
            max_length=128,
            generator=random.Random(seed),
            short_probability=short,
            random_for_lone=False,
        )
    ]
    return sum(told) / len(told)


def pairs_of(documents: Sequence[Sequence[str]]) -> list[Pair]:
    """Two sentences and the next two, from every part of the documents."""
    return [
        (" ".join(document[at : at + 2]), " ".join(document[at + 2 : at + 4]))
        for document in documents
        for at in range(0, len(document) - 3, 4)
    ]


def _features(pairs: Sequence[Pair], seed: int) -> tuple[csr_matrix, np.ndarray]:
    """Words and word pairs of the first text minus those of the second; half are swapped."""
    generator = random.Random(seed)
    swapped = [generator.random() < 0.5 for _ in pairs]
    first = [b if yes else a for (a, b), yes in zip(pairs, swapped, strict=True)]
    second = [a if yes else b for (a, b), yes in zip(pairs, swapped, strict=True)]
    words = HashingVectorizer(
        n_features=2**18, ngram_range=(1, 2), lowercase=False, token_pattern=_TOKEN, binary=True
    )
    begins = [[_beginning(text) for text in texts] for texts in (first, second)]
    both = (
        words.transform(first) - words.transform(second),
        words.transform(begins[0]) - words.transform(begins[1]),
    )
    return hstack(both).tocsr(), np.array(swapped, dtype=int)


def _beginning(text: str) -> str:
    return " ".join(f"^{word}" for word in re.findall(_TOKEN, text)[:_FIRST_WORDS])


def likelier_as_they_stand(model: cm.Model, pairs: Sequence[Pair]) -> float:
    """Share of the pairs that a causal model finds likelier than the other way round."""
    scores = cm.score(model, [text for a, b in pairs for text in (f"{a} {b}", f"{b} {a}")])
    there, back = scores[::2], scores[1::2]
    return sum(a.total > b.total for a, b in zip(there, back, strict=True)) / len(pairs)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def main() -> None:
    """Print one line for each question."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.order_pairs", description=__doc__)
    parser.add_argument("--model", default="albert-mini", help="whose vocabulary cuts the text")
    parser.add_argument("--causal", default="causal-mini", help="who says what is likelier")
    parser.add_argument("--held-out", type=Path, required=True)
    parser.add_argument("--training", type=Path)
    arguments = parser.parse_args()
    documents = list(read_documents(str(arguments.held_out)))
    corpus = Corpus.encode(documents, cm.load(arguments.model).tokenizer)
    for short in (0.0, 0.1, 0.5, 1.0):
        share = longer_is_second(corpus, short)
        _say(f"short_probability {short}: the longer part stands second in {share:.1%}")
    held_out = pairs_of(documents)
    share = sum(len(b) > len(a) for a, b in held_out) / len(held_out)
    _say(f"two and two sentences: the longer text stands second in {share:.1%}")
    share = likelier_as_they_stand(cm.load(arguments.causal), held_out)
    _say(f"{arguments.causal} finds {share:.1%} of these {len(held_out):,} likelier as they stand")
    if arguments.training is None:
        return
    training = pairs_of(list(read_documents(str(arguments.training))))
    random.Random(0).shuffle(training)
    rows, labels = _features(training[:_MOST], 1)
    fitted = LogisticRegression(max_iter=300).fit(rows, labels)
    right = fitted.score(*_features(held_out, 2))
    _say(f"a logistic regression on {len(labels):,} pairs: {right:.1%} of {len(held_out):,}")


if __name__ == "__main__":
    main()
