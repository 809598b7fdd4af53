"""What the Meaning lab says below its pictures. No Gradio in it."""

from itertools import combinations

from app.labs.meaning.answers import Compared, Words
from app.parts.plain import sentences
from core_models.prediction import meaning
from viz.meaning import layer_name
from viz.svg import Wording, listed

SAME = 0.9999


def say(found: Compared, layer: int, way: str) -> str:
    """Which sentences are most and least alike at a layer."""
    table, name = found.cosines[way][layer], layer_name(layer)
    pairs = sorted(combinations(range(len(table)), 2), key=lambda pair: -table[pair[0]][pair[1]])
    (a, b), (c, d) = pairs[0], pairs[-1]
    if table[c][d] > SAME:  # also of static vectors: with capitals or blanks they may be several
        return Wording("{0}: one vector for all of them.", name)
    if len(pairs) == 1:
        return Wording("{0}: their cosine is {1}.", name, f"{table[a][b]:.2f}")
    return Wording(
        "{0}: sentences {1} and {2} are most alike ({3}), {4} and {5} least ({6}).",
        name,
        *(found.numbers[n] + 1 for n in (a, b)),
        f"{table[a][b]:.2f}",
        *(found.numbers[n] + 1 for n in (c, d)),
        f"{table[c][d]:.2f}",
    )


def say_pieces(found: Compared) -> str:
    """Whether the word is one piece."""
    first = found.pieces[0]
    if all(pieces == first for pieces in found.pieces):
        text = "The word is cut into {0}; its vector is the mean of theirs."
        return Wording(text, " · ".join(first)) if len(first) > 1 else ""
    text = "In sentence {0} the word is cut into {1}; its vector is the mean of theirs."
    return sentences(
        *(
            Wording(text, number + 1, " · ".join(pieces))
            for number, pieces in zip(found.numbers, found.pieces, strict=True)
            if len(pieces) > 1
        )
    )


def say_missing(found: Compared, words: Words) -> str:
    """Which sentences do not hold the word, or not where the model still reads, or repeat it."""
    beyond, all_ = found.beyond, range(len(words.sentences))
    out = [n for n in all_ if n not in (*found.numbers, *beyond)]
    again = [n for n in found.numbers if stands_again(words.sentences[n], words.word)]
    said = (
        ("Without the word, and left out: sentence {0}.", out),
        ("The word stands beyond what this model reads, and is left out: sentence {0}.", beyond),
        ("The word stands more than once, and its first place counts: sentence {0}.", again),
    )
    numbers = [(text, listed(str(n + 1) for n in each)) for text, each in said if each]
    return sentences(*(Wording(text, each) for text, each in numbers))


def stands_again(sentence: str, word: str) -> bool:
    """Whether a sentence holds a word behind the place that counts."""
    first = meaning.find_word(sentence, word)
    return first is not None and meaning.find_word(sentence[first[1] :], word) is not None
