"""Vocabularies learnt from texts: one recipe per kind, kept as values."""

import io
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import tokenizers
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, trainers

from core_models.config.check import MOST_PIECES
from core_models.errors import InputError
from core_models.tokenizer import files
from core_models.tokenizer.encoding import check_unicode

_LONGEST = 2**30
"""Bytes of a text; SentencePiece passes over longer ones."""
_SILENT = 3
"""Of SentencePiece's log: nothing below fatal errors."""
_RESERVED = {0x2581: " ", 0x2585: " "}
"""SentencePiece passes over texts that hold its own signs."""


class Recipe(NamedTuple):
    """How one kind of vocabulary is learnt."""

    specials: files.Specials
    template: Callable[[files.Specials], files.Template]
    learn: Callable[[Iterable[str], int, files.Specials, bool], tokenizers.Tokenizer]
    smallest: int
    """Fewest pieces that make sense: special pieces and an alphabet."""


def train(
    texts: Iterable[str],
    *,
    vocabulary: int,
    kind: str,
    lowercase: bool,
    template: files.Template | None,
) -> tuple[tokenizers.Tokenizer, dict[str, Any]]:
    """Backend and tokenizer_config.json settings; see `core_models.tokenizer.Tokenizer.train`.

    Raises:
        InputError: The kind is unknown, ``vocabulary`` is too small for it or for the characters
            of the texts, or the texts are empty.
    """
    if kind not in RECIPES:
        raise InputError(f"No vocabulary of kind {kind!r}; allowed: {', '.join(RECIPES)}.")
    recipe = RECIPES[kind]
    if type(vocabulary) is not int or vocabulary > MOST_PIECES:
        raise InputError(
            f"vocabulary is {repr(vocabulary)[:40]}; it must be a whole number, at most "
            f"{MOST_PIECES:,}."
        )
    if vocabulary < recipe.smallest:
        raise InputError(
            f"A vocabulary of {vocabulary} is too small; {kind} needs at least {recipe.smallest}."
        )
    backend = recipe.learn(_checked(texts), vocabulary, recipe.specials, lowercase)
    if backend.get_vocab_size() <= len(recipe.specials.names()):
        raise InputError("There is no text to learn a vocabulary from; give some sentences.")
    chosen = template or recipe.template(recipe.specials)
    backend.post_processor = chosen.processor(backend)
    return backend, files.settings_for(backend, recipe.specials, chosen, lowercase=lowercase)


def _checked(texts: object) -> Iterator[str]:
    """The texts one by one; InputError at the first that is none."""
    if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
        raise InputError(f"texts must be a list of texts, not {type(texts).__name__}.")
    return map(check_unicode, texts)


def _wordpiece(
    texts: Iterable[str], size: int, specials: files.Specials, lowercase: bool
) -> tokenizers.Tokenizer:
    kept = list(texts)
    scratch = files.wordpiece({specials.unknown: 0}, specials, lowercase=lowercase)
    # The library numbers the "##x" letters in the order of a randomly seeded hash table, and that
    # order breaks ties between merges. Naming them beforehand makes the result repeatable.
    letters = sorted(_inner_letters(kept, scratch))
    named = [*specials.names(), *(f"##{letter}" for letter in letters)]
    trainer = trainers.WordPieceTrainer(
        vocab_size=size, special_tokens=named, limit_alphabet=10**6, show_progress=False
    )
    learner = tokenizers.Tokenizer(models.WordPiece(unk_token=specials.unknown))
    learner.normalizer, learner.pre_tokenizer = scratch.normalizer, scratch.pre_tokenizer
    learner.train_from_iterator(kept, trainer)
    pieces = learner.get_vocab(with_added_tokens=True)
    ordered = sorted(pieces, key=pieces.__getitem__)
    return files.wordpiece(
        {piece: i for i, piece in enumerate(ordered)}, specials, lowercase=lowercase
    )


def _inner_letters(texts: Iterable[str], backend: tokenizers.Tokenizer) -> set[str]:
    """Letters that stand inside a word somewhere."""
    # Many texts share their stretches between blanks; splitting every text takes much longer.
    stretches: set[str] = set()
    for text in texts:
        stretches.update(backend.normalizer.normalize_str(text).split())
    letters: set[str] = set()
    for stretch in stretches:
        for word, _ in backend.pre_tokenizer.pre_tokenize_str(stretch):
            letters.update(word[1:])
    return letters


def _byte_bpe(
    texts: Iterable[str], size: int, specials: files.Specials, lowercase: bool
) -> tokenizers.Tokenizer:
    del lowercase  # byte-level vocabularies keep the text as it is (RoBERTa)
    backend = tokenizers.Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=list(specials.names()),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    backend.train_from_iterator(texts, trainer)
    files.add_specials(backend, specials, lstrip=True)
    return backend


def _unigram(
    texts: Iterable[str], size: int, specials: files.Specials, lowercase: bool
) -> tokenizers.Tokenizer:
    backend = tokenizers.Tokenizer(models.Unigram())
    steps: list[Any] = [normalizers.NFKC()]
    if lowercase:
        steps.append(normalizers.Lowercase())
    # Line breaks and tabs are blanks, too, as in SentencePiece; nothing else knows them.
    backend.normalizer = normalizers.Sequence([*steps, normalizers.Replace(Regex(r"\s+"), " ")])
    # "first": what follows a mask piece directly ("[MASK].") gets no blank of its own.
    backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    backend.decoder = decoders.Metaspace(prepend_scheme="first")
    names = specials.names()
    cleaned = [backend.normalizer.normalize_str(text) for text in texts]
    try:
        scores = _sentence_pieces(cleaned, size - len(names))
    except RuntimeError as error:
        if "vocab_size" not in str(error):
            raise
        raise InputError(
            f"No vocabulary of {size} pieces can be learnt from these texts; ask for more pieces "
            "than the texts have different characters."
        ) from error
    ordered = [(name, 0.0) for name in names]
    ordered += [(piece, scores[piece]) for piece in sorted(scores.keys() - set(names))]
    backend.model = models.Unigram(ordered, unk_id=names.index(specials.unknown))
    files.add_specials(backend, specials, lstrip=True)
    return backend


def _sentence_pieces(texts: list[str], size: int) -> dict[str, float]:
    """Pieces with their scores, by SentencePiece's trainer (arXiv 1808.06226).

    It learns no piece of letters and marks ("body."), with which hiding a word would hide the full
    stop; that of the tokenizers library does.
    """
    if not any(map(str.strip, texts)):
        return {}
    found = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=(text.translate(_RESERVED) for text in texts),
        model_writer=found,
        vocab_size=size + 1,  # and the unknown piece, which it wants
        hard_vocab_limit=False,
        model_type="unigram",
        character_coverage=1.0,
        normalization_rule_name="identity",  # the texts are cleaned
        bos_id=-1,
        eos_id=-1,
        max_sentence_length=_LONGEST,
        num_threads=4,  # sums depend on their number
        minloglevel=_SILENT,
    )
    pieces = SentencePieceProcessor(model_proto=found.getvalue())
    known = range(pieces.get_piece_size())
    return {pieces.id_to_piece(i): pieces.get_score(i) for i in known if not pieces.is_unknown(i)}


RECIPES = {
    "wordpiece": Recipe(files.Specials(), files.Template.enclosing, _wordpiece, 100),
    "byte_bpe": Recipe(files.ANGLED, files.Template.doubled, _byte_bpe, 261),
    "unigram": Recipe(
        files.Specials(pad="<pad>", unknown="<unk>"), files.Template.enclosing, _unigram, 100
    ),
}
