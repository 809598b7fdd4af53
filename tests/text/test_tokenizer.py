import string
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from core_models.errors import InputError
from core_models.tokenizer import MAX_CHARACTERS, Specials, Tokenizer
from core_models.tokenizer import files as tokenizer_files

MODELS = Path(__file__).parents[2] / "assets" / "models"


def small(words: str, **settings: object) -> Tokenizer:
    """A WordPiece tokenizer with exactly these pieces after the special ones."""
    vocabulary = {p: i for i, p in enumerate([*Specials().names(), *words.split()])}
    return Tokenizer(tokenizer_files.wordpiece(vocabulary, Specials(), lowercase=True), settings)


def pieces(line: str) -> list[str]:
    return line.split()


# --- by hand ----------------------------------------------------------------------------------


def test_a_sentence_by_hand() -> None:
    tok = small("the cat ##s sat un ##able ,")
    found = tok.encode("The cats, un[MASK] unable!")
    assert found.pieces == pieces("[CLS] the cat ##s , un [MASK] un ##able [UNK] [SEP]")
    assert found.ids == [2, 5, 6, 7, 11, 9, 4, 9, 10, 1, 3]
    assert found.words == [None, 0, 1, 1, 2, 3, 4, 5, 5, 6, None]
    assert found.segment_ids == [0] * 11
    assert found.special == [True, *[False] * 9, True]
    assert [found.text[a:b] for a, b in found.offsets[1:-1]] == (
        pieces("The cat s , un [MASK] un able !")
    )
    assert found.truncated is False


def test_a_pair_by_hand() -> None:
    tok = small("a b c ##d")
    found = tok.encode("a b", "cd a")
    assert found.pieces == pieces("[CLS] a b [SEP] c ##d a [SEP]")
    assert found.segment_ids == [0, 0, 0, 0, 1, 1, 1, 1]
    assert found.words == [None, 0, 1, None, 2, 2, 3, None]
    assert found.offsets == [(0, 0), (0, 1), (2, 3), (0, 0), (0, 1), (1, 2), (3, 4), (0, 0)]
    assert (found.text, found.pair) == ("a b", "cd a")


def test_special_pieces_written_in_the_text_are_special() -> None:
    found = small("a").encode("a [SEP] a [PAD] [CLS]")
    assert found.special == [True, False, True, False, True, True, True]
    assert found.words == [None, 0, None, 1, None, None, None]


def test_display_and_word_starts() -> None:
    tok = small("the ##ing ## # ##")
    shown = {p: tok.display(i) for i in range(tok.vocabulary) if (p := tok.piece(i))}
    assert shown["##ing"] == "ing"
    assert shown["the"] == "the"
    assert shown["##"] == "##"  # nothing would be left of it
    assert shown["[MASK]"] == "[MASK]"
    starts = [tok.starts_word(i) for i in range(tok.vocabulary)]
    assert starts[: len(starts)] == [
        p == "" or not p.startswith("##") for p in map(tok.piece, range(len(starts)))
    ]
    with pytest.raises(InputError, match=r"outside 0\.\."):
        tok.piece(tok.vocabulary)


def test_byte_pieces_read_as_text(sentences: list[str]) -> None:
    tok = Tokenizer.train(sentences[:500], vocabulary=400, kind="byte_bpe")
    index = tok.id("\u0120the")
    assert index is not None
    assert tok.display(index) == "the"
    assert tok.starts_word(index)
    half = tok.encode("é").ids[1]  # the first byte of a two-byte character
    assert tok.display(half) == "\\xc3"
    for index in range(tok.vocabulary):
        assert "\u0120" not in tok.display(index)


@pytest.mark.parametrize("kind", ["byte_bpe", "unigram"])
def test_pieces_of_space_alone_have_a_sign(sentences: list[str], kind: str) -> None:
    tok = Tokenizer.train(sentences[:500], vocabulary=400, kind=kind)
    encoding = tok.encode("the  \n end \U00013000")
    shown = [tok.display(index) for index in encoding.ids]
    assert "␣" in shown
    assert all(text.strip() for text in shown)
    if kind == "byte_bpe":  # the others read a line break as a space
        assert "↵" in shown


def test_each_kind_of_space_has_its_sign_and_only_a_blank_starts_a_word(
    sentences: list[str],
) -> None:
    tok = Tokenizer.train(sentences[:500], vocabulary=400, kind="byte_bpe")
    glyphs = {"\u0109": "⇥", "\u010a": "↵", "\u0120": "␣"}  # of tab, line break and blank
    for piece, sign in glyphs.items():
        index = tok.id(piece)
        assert index is not None
        assert tok.display(index) == sign
        assert tok.starts_word(index) == (sign == "␣")
    letter = tok.id("e")
    assert letter is not None
    assert not tok.starts_word(letter)


def test_blanks_in_a_row_are_one_to_a_unigram_vocabulary(sentences: list[str]) -> None:
    tok = Tokenizer.train(sentences[:500], vocabulary=400, kind="unigram")
    one, more = tok.encode("the river was"), tok.encode("the   river  was")
    assert (more.ids, more.words) == (one.ids, one.words)
    ends = [[found.text[:stop].split() for _, stop in found.offsets] for found in (one, more)]
    assert ends[0] == ends[1]
    assert tok.unknown_id in tok.encode("the {2,}river").ids  # no character is lost


@pytest.mark.parametrize("space", ["\n", "\r\n", "\t", " \n ", "\u2028"])
def test_every_space_is_a_blank_to_a_unigram_vocabulary(sentences: list[str], space: str) -> None:
    """As in SentencePiece; not a piece that nobody knows, with the next word's letters behind."""
    tok = Tokenizer.train(sentences[:500], vocabulary=400, kind="unigram")
    one, other = tok.encode("the river was"), tok.encode(f"the{space}river was")
    assert (other.ids, other.words) == (one.ids, one.words)
    ((plain, _),) = tok.encode_plain([f"the{space}river was"])
    assert plain.tolist() == one.ids[1:-1]
    place = one.pieces.index("\u2581was")
    start, end = other.offsets[place]
    assert other.text[start:end].strip() == "was"


@pytest.mark.parametrize("name", ["albert-mini", "xlnet-mini", "deberta-v3-mini"])
def test_a_line_break_is_a_blank_to_the_shipped_unigram_vocabularies(name: str) -> None:
    """Their rules, with which they were trained, know blanks alone."""
    tok = Tokenizer.from_folder(MODELS / name)
    for space in ("\n", "\t", "\u2028"):
        one, other = tok.encode("The cat sat on it"), tok.encode(f"The cat{space}sat on it")
        assert (other.ids, other.words, other.offsets) == (one.ids, one.words, one.offsets)
        ((plain, _),) = tok.encode_plain([other.text])
        assert plain.tolist() == [i for i in one.ids if i not in tok.special_ids]


def test_no_unigram_piece_is_a_word_with_its_mark(sentences: list[str]) -> None:
    """Hiding "body" must not hide the full stop, as the released vocabularies never do."""
    tok = Tokenizer.train([*sentences[:500], "\u2581 an Ångström!"], vocabulary=900, kind="unigram")
    pieces = [tok.piece(i).removeprefix("\u2581") for i in range(len(tok.specials.names()), 900)]
    assert not [p for p in pieces if any(map(str.isalpha, p)) and not p.isalpha()]
    assert tok.encode("The river.").pieces[-2] == "."
    assert tok.unknown_id not in tok.encode("Ångström!").ids  # no text is passed over


def test_unigram_pieces_read_as_text(sentences: list[str]) -> None:
    tok = Tokenizer.train(sentences[:500], vocabulary=400, kind="unigram")
    assert all("\u2581" not in tok.display(i) for i in range(tok.vocabulary))


# --- vocabularies trained here ----------------------------------------------------------------


def test_bert_vocabularies_start_with_the_special_pieces(tokenizer: Tokenizer) -> None:
    assert [tokenizer.piece(i) for i in range(5)] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    ids = (tokenizer.pad_id, tokenizer.unknown_id, tokenizer.cls_id, tokenizer.sep_id)
    assert (*ids, tokenizer.mask_id) == (0, 1, 2, 3, 4)
    assert tokenizer.special_ids == {0, 2, 3}
    assert tokenizer.vocabulary == 3000


@pytest.mark.parametrize("kind", ["wordpiece", "byte_bpe", "unigram"])
def test_training_is_repeatable(sentences: list[str], kind: str) -> None:
    first, second = (Tokenizer.train(sentences[:800], vocabulary=600, kind=kind) for _ in "ab")
    assert [*map(first.piece, range(600))] == [*map(second.piece, range(600))]
    assert first.fingerprint == second.fingerprint
    assert (
        first.fingerprint != Tokenizer.train(sentences[:700], vocabulary=600, kind=kind).fingerprint
    )


def test_case_is_kept_on_request(sentences: list[str]) -> None:
    cased = Tokenizer.train(sentences[:500], vocabulary=800, lowercase=False)
    assert cased.encode("The the").ids[1] != cased.encode("The the").ids[2]


def test_impossible_trainings_are_refused() -> None:
    with pytest.raises(InputError, match="wordpiece, byte_bpe, unigram"):
        Tokenizer.train(["a"], vocabulary=500, kind="letters")
    with pytest.raises(InputError, match="too small"):
        Tokenizer.train(["a"], vocabulary=10)
    with pytest.raises(InputError, match="byte_bpe needs at least 261"):  # 256 bytes and 5
        Tokenizer.train(["a"], vocabulary=260, kind="byte_bpe")
    letters = ["".join(map(chr, range(0x4E00, 0x4E00 + 300)))]
    with pytest.raises(InputError, match=r"No vocabulary of 200 pieces .* different characters"):
        Tokenizer.train(letters, vocabulary=200, kind="unigram")


def test_pieces_of_a_word_are_those_inside_a_sentence(any_kind: Tokenizer) -> None:
    inside = any_kind.encode("we saw a river there")
    place = inside.text.index("river")
    ends = [end for _, end in inside.offsets]
    group = inside.words[ends.index(place + len("river"))]
    ids = [i for i, word in zip(inside.ids, inside.words, strict=True) if word == group]
    assert any_kind.pieces_of("river") == ids
    assert any_kind.pieces_of(" river ") == ids


@pytest.mark.parametrize("kind", ["wordpiece", "byte_bpe", "unigram"])
def test_no_blank_stands_before_a_chinese_word(kind: str) -> None:
    texts = ["我们去北京。", "天气很好。", "北京天气很好。", "我们喜欢北京。"] * 9
    words = Tokenizer.train(texts, vocabulary=320, kind=kind)
    for word in ("北京", "天气"):
        inside = words.encode(f"我们说{word}。")
        place = inside.text.index(word)
        held = range(place, place + len(word))
        ids = [i for i, (a, b) in zip(inside.ids, inside.offsets, strict=True) if a in held and b]
        assert words.pieces_of(word) == ids


# --- truncation -------------------------------------------------------------------------------


def test_long_texts_lose_their_end() -> None:
    tok = small("a b")
    found = tok.encode("a " * 30, max_length=10)
    assert len(found) == 10
    assert found.truncated
    assert found.ids[-1] == tok.sep_id
    assert not tok.encode("a " * 8, max_length=10).truncated


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        (20, 2, (5, 2)),
        (2, 20, (2, 5)),
        (20, 20, (3, 4)),
        (3, 4, (3, 4)),
        (4, 5, (3, 4)),
        (9, 4, (4, 3)),
    ],
)
def test_the_longer_text_of_a_pair_is_cut(first: int, second: int, kept: tuple[int, int]) -> None:
    found = small("a b").encode("a " * first, "b " * second, max_length=10)
    assert (found.pieces.count("a"), found.pieces.count("b")) == kept
    assert len(found) <= 10
    assert found.truncated == (first + second > 7)


def test_truncation_equals_that_of_transformers(
    tokenizer: Tokenizer, sentences: list[str], tmp_path: Path
) -> None:
    transformers = pytest.importorskip("transformers")
    tokenizer.save(tmp_path)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    for one, two in zip(sentences[:60], sentences[60:120], strict=True):
        for length in (8, 13, 24):
            ours = tokenizer.encode(one, two, max_length=length)
            found = theirs(one, two, max_length=length, truncation="longest_first")
            assert found["input_ids"] == ours.ids


def test_no_room_is_refused(tokenizer: Tokenizer) -> None:
    with pytest.raises(InputError, match="no room"):
        tokenizer.encode("a", max_length=2)
    with pytest.raises(InputError, match="no room"):
        tokenizer.encode("a", "b", max_length=4)
    assert len(tokenizer.encode("a", max_length=3)) == 3
    assert len(tokenizer.encode("a", "b", max_length=5)) == 5


def test_a_batch_is_its_texts_one_by_one(tokenizer: Tokenizer, sentences: list[str]) -> None:
    one, two = sentences[:2]
    found = tokenizer.encode_batch([one, (two, one), two], max_length=7)
    assert found == [
        tokenizer.encode(one, max_length=7),
        tokenizer.encode(two, one, max_length=7),
        tokenizer.encode(two, max_length=7),
    ]
    assert [len(encoding) for encoding in found] == [7, 7, 7]


# --- any text at all --------------------------------------------------------------------------


def test_lists_agree_and_offsets_lie_in_the_text(any_kind: Tokenizer, awkward: list[str]) -> None:
    for text in awkward:
        found = any_kind.encode(text)
        lists = (found.ids, found.segment_ids, found.pieces, found.offsets, found.words)
        assert {len(values) for values in lists} == {len(found)} == {len(found.special)}
        previous = 0
        for (start, end), special in zip(found.offsets, found.special, strict=True):
            assert 0 <= start <= end <= len(text)
            assert special or start >= previous
            previous = previous if special else start
        groups = [w for w in found.words if w is not None]
        assert groups == sorted(groups)
        assert set(groups) == set(range(max(groups) + 1))


def test_known_letters_are_found_at_their_offsets(tokenizer: Tokenizer) -> None:
    text = "🙂 The river — שלום — e\u0301 and 北京 river"
    found = tokenizer.encode(text)
    rivers = [
        text[a:b] for p, (a, b) in zip(found.pieces, found.offsets, strict=True) if p == "river"
    ]
    assert rivers == ["river", "river"]
    assert [
        text[a:b] for p, (a, b) in zip(found.pieces, found.offsets, strict=True) if p == "and"
    ] == ["and"]


def test_combining_marks_share_a_word(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode("ca\u0301t").ids == tokenizer.encode("cat").ids


@pytest.mark.parametrize("kind", ["wordpiece", "byte_bpe", "unigram"])
def test_a_combining_mark_belongs_to_the_piece_before_it(kind: str, sentences: list[str]) -> None:
    """Whoever cuts the text of a piece, an answer say, keeps the accent."""
    made = Tokenizer.train([*sentences, "cafe caf\u00e9"], vocabulary=400, kind=kind)
    for text in ("The cafe\u0301 was cold.", "A cafe\u0301"):
        for found in (made.encode(text), made.encode("a", text)):
            own = found.offsets[3:] if found.pair else found.offsets
            held = {place for start, end in own for place in range(start, end)}
            assert {n for n, letter in enumerate(text) if letter != " "} <= held


def test_decode_gives_text_back(tokenizer: Tokenizer) -> None:
    assert tokenizer.decode(tokenizer.encode("The river was cold.").ids) == "the river was cold."


@pytest.mark.parametrize("blank", ["", " ", "\n\t ", "\u3000"])
def test_blank_texts_are_refused(tokenizer: Tokenizer, blank: str) -> None:
    with pytest.raises(InputError, match="empty"):
        tokenizer.encode(blank)
    with pytest.raises(InputError, match="empty"):
        tokenizer.encode("fine", blank)


def test_other_impossible_texts_are_refused(tokenizer: Tokenizer) -> None:
    with pytest.raises(InputError, match=r"100,000 characters; at most 20,000"):
        tokenizer.encode("x" * 100_000)
    assert tokenizer.encode("a " * (MAX_CHARACTERS // 2)).truncated
    with pytest.raises(InputError, match="surrogate"):
        tokenizer.encode("half \ud83d")
    with pytest.raises(InputError, match="cannot be shown"):
        tokenizer.encode("\u200b\u0007")
    with pytest.raises(InputError, match="must be a string, not list"):
        tokenizer.encode(["a"])  # type: ignore[arg-type]


def test_one_enormous_word_is_unknown(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode("x" * 5000).ids[1:-1] == [tokenizer.unknown_id]


def test_many_threads_do_not_disturb_each_other(tokenizer: Tokenizer) -> None:
    text = " ".join(string.ascii_lowercase) * 4

    def length(most: int) -> int:
        return len(tokenizer.encode(text, max_length=most))

    wanted = [5 + i % 60 for i in range(400)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(length, wanted)) == wanted


def test_plain_encoding_equals_the_inside_of_the_full_one(
    any_kind: Tokenizer, sentences: list[str], awkward: list[str]
) -> None:
    texts = [*sentences[:50], *awkward]
    for text, (ids, starts) in zip(texts, any_kind.encode_plain(texts), strict=True):
        full = any_kind.encode(text)
        inside = [p for p, special in enumerate(full.special) if not special]
        assert ids.tolist() == [full.ids[p] for p in inside]
        groups = np.cumsum(starts) - 1
        assert groups.tolist() == [full.words[p] for p in inside]


def test_a_gap_may_be_written_either_way(any_kind: Tokenizer) -> None:
    text = "We saw <mask>, then [MASK]."
    found = any_kind.encode(text, "It is <mask>")
    gaps = [p for p, index in enumerate(found.ids) if index == any_kind.mask_id]
    sides = [text, text, "It is <mask>"]
    spans = [found.offsets[p] for p in gaps]
    written = [side[a:b].strip() for side, (a, b) in zip(sides, spans, strict=True)]
    assert written == ["<mask>", "[MASK]", "<mask>"]
    # Offsets of what follows count in the text as it was given.
    then = next(p for p, (a, b) in enumerate(found.offsets) if text[a:b].strip().startswith("the"))
    assert text[: found.offsets[then][0]].strip() == "We saw <mask>,"
    own = any_kind.piece(any_kind.mask_id)
    same = any_kind.encode(text.replace("[MASK]", own).replace("<mask>", own), f"It is {own}")
    assert found.ids == same.ids


def test_no_blank_piece_follows_a_gap(sentences: list[str]) -> None:
    tokenizer = Tokenizer.train(sentences[:2000], vocabulary=800, kind="unigram")
    assert tokenizer.encode("We saw it [MASK].").pieces[-3:] == ["[MASK]", ".", "[SEP]"]


def test_a_comma_is_a_word_of_its_own(any_kind: Tokenizer) -> None:
    found = any_kind.encode("The river, the village.")
    spans = {}
    for (a, b), word in zip(found.offsets, found.words, strict=True):
        if word is not None:
            start, stop = spans.get(word, (a, b))
            spans[word] = (min(start, a), max(stop, b))
    texts = [found.text[a:b].strip() for a, b in spans.values()]
    assert texts == ["The", "river", ",", "the", "village", "."]


def test_values_of_another_kind_are_refused() -> None:
    tok = small("the cat")
    for ids in (None, 3, "ab", [None], [1.5], [-1], [tok.vocabulary], [2**40]):
        with pytest.raises(InputError, match=r"ids must be a list|is outside 0\.\."):
            tok.decode(ids)  # type: ignore[arg-type]
    assert tok.decode(np.array([5, 6])) == "the cat"  # type: ignore[arg-type]
    for word in (None, b"x", "\ud800"):
        with pytest.raises(InputError, match=r"must be a string|half a character"):
            tok.pieces_of(word)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="max_length is None"):
        tok.encode("the cat", max_length=None)  # type: ignore[arg-type]
    for inputs in (None, [[]], [("a", "b", "c")]):
        with pytest.raises(InputError, match="must be"):
            tok.encode_batch(inputs)  # type: ignore[arg-type]
    for index in (None, "5", -1, 5.0, tok.vocabulary):
        with pytest.raises(InputError, match=r"is outside 0\.\."):
            tok.display(index)  # type: ignore[arg-type]
    for texts in (None, "the cat", [None], ["\ud800"]):
        with pytest.raises(InputError, match=r"must be a|half a character"):
            tok.encode_plain(texts)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["wordpiece", "byte_bpe", "unigram"])
def test_what_no_vocabulary_is_learnt_from_is_refused(kind: str) -> None:
    for texts in (None, "The cat sat.", [None], ["the \ud800 cat"]):
        with pytest.raises(InputError, match=r"must be a|half a character"):
            Tokenizer.train(texts, vocabulary=300, kind=kind)  # type: ignore[arg-type]
    for size in (None, 2.5, 10**9):  # the last one made the library end the process
        with pytest.raises(InputError, match=r"vocabulary is .*at most 2,000,000"):
            Tokenizer.train(["the cat"], vocabulary=size, kind=kind)  # type: ignore[arg-type]
