import json
import math
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import core_models as cm
from benchmarks import minimal_pairs
from core_models.cli.main import main
from core_models.errors import InputError
from core_models.evaluation import (
    evaluate_capitals,
    evaluate_forgeries,
    evaluate_minimal_pairs,
    evaluate_plain_sentences,
    evaluate_text_pairs,
    evaluate_words,
)
from core_models.evaluation.capitals import ATLAS, capitals
from core_models.evaluation.language import language_of
from core_models.evaluation.minimal_pairs import SHIPPED, Pair, read_pairs
from core_models.evaluation.words import Word, choose_words
from core_models.prediction import fill, score
from core_models.tokenizer import Tokenizer
from tests.core.foreign_models import saved
from tests.core.tiny_models import tiny

ASSETS = Path(__file__).resolve().parents[2] / "assets"
SENTENCES = [
    "The river was very cold in the morning.",
    "A farmer doesn't sell the old boats.",
    "Snow covered the village.",
    "Rain!",
]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    # "morning" stays in pieces: its letters are known, the word is not.
    known = [s.replace("morning", "m o r n i n g") for s in SENTENCES]
    return Tokenizer.train([*known, "the a in on cat sat mat"], vocabulary=100)


@pytest.fixture(scope="module")
def model(tokenizer: Tokenizer) -> cm.Model:
    config = cm.size("bert-tiny").with_vocabulary(tokenizer.vocabulary)
    made = cm.Model.new(
        replace(config, schedule=(0,)), tokenizer, generator=torch.Generator().manual_seed(1)
    )
    with torch.no_grad():
        made.encoder.embeddings.pieces.weight.mul_(6.0)
    return made.eval()


def test_the_shipped_pairs_are_what_the_templates_make() -> None:
    assert minimal_pairs.FILE == SHIPPED
    assert minimal_pairs.lines() == SHIPPED.read_text(encoding="utf-8")
    pairs = read_pairs()
    assert set(Counter(pair.phenomenon for pair in pairs).values()) == {180}
    assert len({(pair.good, pair.bad) for pair in pairs}) == len(pairs) == 2340
    assert not {pair.good for pair in pairs} & {pair.bad for pair in pairs}
    for pair in pairs:
        assert len(pair.good.split()) == len(pair.bad.split())


_OF_BYTES = frozenset({"farmer", "farmers", "queen", "rice"})
_OF_ALL_SOURCES = frozenset([
    "experts", "farmers", "islands", "leaders", "managers", "plays", "readers", "rooms", "schools",
    "ships", "stones", "wants",
])  # fmt: skip
_OF_HALF_PAIRS = frozenset({"experts", "managers", "plays", "readers", "schools"})
SPELT = {
    "albert-mini": _OF_HALF_PAIRS,
    "deberta-mini": _OF_BYTES,
    "modernbert-mini": _OF_BYTES,
    "diffusion-mini": _OF_BYTES,
    "roberta-mini": _OF_BYTES,
    "deberta-v2-mini": _OF_ALL_SOURCES,
    "deberta-v3-mini": _OF_ALL_SOURCES,
    "deberta-v3-mini-generator": _OF_ALL_SOURCES,
    "xlnet-mini": _OF_ALL_SOURCES,
}
"""Their vocabularies were learnt after the pairs; assets/minimal_pairs/README.md tells it."""


def test_words_of_the_pairs_are_whole_pieces_of_every_english_vocabulary() -> None:
    words = {word for pair in read_pairs() for word in re.findall(r"[a-z]+", f" {pair.good[1:]}")}
    words |= {word for pair in read_pairs() for word in re.findall(r"[a-z]+", pair.bad[1:])}
    words -= {pair.good[1:].split()[0] for pair in read_pairs()}  # what is left of a first word
    for folder in sorted((ASSETS / "models").iterdir()):
        if "chinese" in folder.name:
            continue
        tokenizer = Tokenizer.from_folder(folder)
        around = len(tokenizer.encode("the of").ids)
        cut = {w for w in words if len(tokenizer.encode(f"the {w} of").ids) != around + 1}
        assert cut == SPELT.get(folder.name, set()), folder.name


@pytest.mark.parametrize(
    ("spelt", "pairs", "longer"),
    [
        (_OF_BYTES, 208, (0, 0)),
        (_OF_ALL_SOURCES, 207, (37, 10)),
        (_OF_HALF_PAIRS, 101, (13, 8)),
    ],
)
def test_words_that_a_vocabulary_spells_make_few_sides_longer(
    spelt: frozenset[str], pairs: int, longer: tuple[int, int]
) -> None:
    """On which side of how many pairs such words stand alone, the right and the wrong one."""
    sides = [
        [sorted(spelt & set(re.findall(r"[a-z]+", side.lower()))) for side in (p.good, p.bad)]
        for p in read_pairs()
    ]
    assert sum(bool(good or bad) for good, bad in sides) == pairs
    assert sum(len(good) > len(bad) for good, bad in sides) == longer[0]
    assert sum(len(bad) > len(good) for good, bad in sides) == longer[1]
    assert sum(good != bad for good, bad in sides) == sum(longer)


def test_a_pair_is_won_by_the_higher_score(model: cm.Model) -> None:
    totals = {s.text: s.total for s in score(model, SENTENCES[:3])}
    low, middle, high = sorted(totals, key=totals.__getitem__)
    pairs = [Pair("a", high, low), Pair("a", low, middle), Pair("b", middle, low)]
    result = evaluate_minimal_pairs(model, [*pairs, Pair("b", low, low)])
    assert result.phenomena == {"a": 0.5, "b": 0.5}  # a tie is no win
    assert result.accuracy == pytest.approx(0.5)
    assert result.pairs == 4


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[]",
        b'{"good": "a"}',
        b"{",
        b'{"phenomenon": "p", "good": "a", "bad": null}',
        b'{"phenomenon": "p", "good": "a", "bad": "\xff"}',
    ],
)
def test_unusable_pairs(tmp_path: Path, line: bytes) -> None:
    file = tmp_path / "pairs.jsonl"
    file.write_bytes(line)
    with pytest.raises(InputError, match=r"pairs\.jsonl"):
        read_pairs(file)
    with pytest.raises(InputError, match=r"missing\.jsonl"):
        read_pairs(tmp_path / "missing.jsonl")


def test_pairs_are_read_from_a_file_with_rare_line_breaks_inside(tmp_path: Path) -> None:
    pair = Pair("p", "one\u2028two\x85three", "b")
    file = tmp_path / "pairs.jsonl"
    line = json.dumps(pair._asdict(), ensure_ascii=False)
    file.write_text(f"{line}\n\n{line}\n", encoding="utf-8")
    assert read_pairs(str(file)) == [pair, pair]


def test_nothing_to_measure_is_said(model: cm.Model) -> None:
    with pytest.raises(InputError, match="there is none"):
        evaluate_minimal_pairs(model, [])
    with pytest.raises(InputError, match="there is none"):
        evaluate_words(model, [])
    with pytest.raises(InputError, match="there is none"):
        evaluate_text_pairs(model, [])


def test_words_are_drawn_from_the_text_alone() -> None:
    words = choose_words(SENTENCES, most=100)
    assert len(words) == 8 + 7 + 4  # a sentence of one word has no context
    assert "doesn't" in {word.sentence[word.start : word.stop] for word in words}
    assert choose_words(SENTENCES, most=5, seed=1) == choose_words(SENTENCES, most=5, seed=1)
    assert choose_words(SENTENCES, most=5, seed=1) != choose_words(SENTENCES, most=5, seed=2)
    assert [w.sentence[w.start : w.stop] for w in choose_words(["我们去北京。"])] == [*"我们去北京"]
    with pytest.raises(InputError, match="no sentence"):
        choose_words(["!!!"])
    with pytest.raises(InputError, match="most is -1"):
        choose_words(SENTENCES, most=-1)


def test_a_hidden_word_keeps_the_marks_of_its_letters() -> None:
    for text in ("Jose\u0301 Garci\u0301a ran", "\u0939\u093f\u0928 \u092e\u0947\u0902"):
        found = [word.sentence[word.start : word.stop] for word in choose_words([text])]
        assert found == text.split()


def test_a_word_that_is_cut_off_counts_as_not_read(model: cm.Model) -> None:
    """The probability of its first pieces is not that of the word."""
    start = SENTENCES[0].index("morning")
    words = [Word(SENTENCES[2], 0, 4), Word(SENTENCES[0], start, start + len("morning"))]
    (encoding,) = model.encode([SENTENCES[0]])
    last = next(p for p, (_, stop) in enumerate(encoding.offsets) if stop == words[1].stop)
    table = replace(model.config.embeddings, positions=last + 1)  # [SEP] takes the last place
    short = cm.Model.new(
        replace(model.config, embeddings=table),
        model.tokenizer,
        generator=torch.Generator().manual_seed(1),
    ).eval()
    assert evaluate_words(model, words).unknown == 0
    assert evaluate_words(short, words).unknown == 0.5


def test_the_pieces_of_a_word_multiply(model: cm.Model) -> None:
    """By hand: hide all pieces, ask for the first; show it, ask for the second."""
    sentence = SENTENCES[0]
    start = sentence.index("morning")
    word = Word(sentence, start, start + len("morning"))
    encoding = model.encode([sentence])[0]
    positions = [p for p, (a, b) in enumerate(encoding.offsets) if a >= start and b <= word.stop]
    positions = [p for p in positions if not encoding.special[p]]
    assert len(positions) > 1
    total, right = 0.0, True
    for nth in range(len(positions)):
        found = fill(model, sentence, masks=positions[nth:], top_k=1).predictions[0]
        assert found.original is not None
        total += math.log(found.original.probability)
        right = right and found.original.rank == 1
    result = evaluate_words(model, [word])
    assert result.perplexity == pytest.approx(math.exp(-total), rel=1e-3)
    assert result.accuracy == float(right)
    assert result.pieces_per_word == len(positions)
    assert result.unknown == 0


def test_a_blank_that_is_a_piece_of_its_own_is_a_piece_of_the_word() -> None:
    """In sight it would tell that a word with a rare beginning follows."""
    words = Tokenizer.from_folder(ASSETS / "models" / "deberta-v3-mini")
    text = "She saw a zebra."
    encoding = words.encode(text)
    first = next(p for p, (start, _) in enumerate(encoding.offsets) if start == 10)
    assert encoding.pieces[first - 1] == "\N{LOWER ONE EIGHTH BLOCK}"
    config = tiny("deberta-v2-xlarge").with_vocabulary(words.vocabulary, pad_id=words.pad_id)
    model = cm.Model.new(config, words, generator=torch.Generator().manual_seed(1)).eval()
    result = evaluate_words(model, [Word(text, 10, 15)])
    positions = [p for p, (start, stop) in enumerate(encoding.offsets) if 9 <= start < stop <= 15]
    assert result.pieces_per_word == len(positions)
    total = 0.0
    for nth in range(len(positions)):
        found = fill(model, text, masks=positions[nth:], top_k=1).predictions[0]
        assert found.original is not None
        total += math.log(found.original.probability)
    assert result.perplexity == pytest.approx(math.exp(-total), rel=1e-3)


@pytest.mark.parametrize("kind", ["byte_bpe", "unigram"])
def test_the_characters_of_a_chinese_piece_share_its_probability(kind: str) -> None:
    text = "天气很好所以大家都出来晒太阳了"
    words = Tokenizer.train([text, "天气很好", "大家都来"] * 30, vocabulary=340, kind=kind)
    encoding = words.encode(text)
    (start, stop), place = max(
        ((span, place) for place, span in enumerate(encoding.offsets)),
        key=lambda entry: entry[0][1] - entry[0][0],
    )
    count = stop - start
    assert count > 1
    config = cm.size("bert-tiny").with_vocabulary(words.vocabulary, pad_id=words.pad_id)
    model = cm.Model.new(config, words, generator=torch.Generator().manual_seed(1)).eval()
    asked = [word for word in choose_words([text]) if start <= word.start < stop]
    assert len(asked) == count
    result = evaluate_words(model, asked)
    (found,) = fill(model, text, masks=[place], top_k=1).predictions
    assert found.original is not None
    # Each counts 1/k of the piece, so together they count it once.
    assert result.perplexity == pytest.approx(found.original.probability ** (-1 / count), rel=1e-3)
    assert result.pieces_per_word == pytest.approx(1 / count)


def test_unknown_words_count_as_wrong_and_have_no_perplexity(model: cm.Model) -> None:
    known = Word(SENTENCES[2], 0, 4)
    sentence = "The 🙂 sat."
    odd = Word(sentence, 4, 5)
    assert evaluate_words(model, [known, odd]).unknown == 0.5
    assert evaluate_words(model, [known, odd]).perplexity == pytest.approx(
        evaluate_words(model, [known]).perplexity
    )
    with pytest.raises(InputError, match="unknown"):
        evaluate_words(model, [odd])


def test_capitals_are_read_from_the_atlas_and_asked_for(tokenizer: Tokenizer) -> None:
    shipped = cm.load("bert-mini")
    found = capitals(ATLAS.read_text("utf-8"))
    assert found["France"] == "Paris"
    result = evaluate_capitals(shipped)
    assert result.asked == sum(len(shipped.tokenizer.pieces_of(k)) == 1 for k in found.values())
    assert result.first <= result.in_first_five <= result.asked
    assert result.first_new <= result.first
    assert result.asked_new < result.asked
    paris = fill(shipped, "The capital of France is [MASK].").predictions[0].candidates[0]
    assert paris.display == "paris"
    assert result.first >= 45
    config = cm.size("bert-tiny").with_vocabulary(tokenizer.vocabulary)
    with pytest.raises(InputError, match="No capital"):
        evaluate_capitals(cm.Model.new(config, tokenizer).eval())


def test_a_capital_beyond_the_last_piece_that_is_read_counts_as_missed() -> None:
    shipped = cm.load("bert-mini")
    config = cm.size("bert-tiny").with_vocabulary(shipped.tokenizer.vocabulary)
    short = replace(config, embeddings=replace(config.embeddings, positions=6))
    model = cm.Model.new(short, shipped.tokenizer, generator=torch.Generator().manual_seed(1))
    found = evaluate_capitals(model.eval())
    assert found.asked > 40
    assert found.first == found.in_first_five == found.in_first_five_new == 0


def test_a_perplexity_beyond_all_numbers_is_the_largest() -> None:
    """Of a training that went astray: a race measures it, too."""
    model = cm.load("bert-mini")
    with torch.no_grad():
        model.encoder.embeddings.pieces.weight.mul_(1e4)
    found = evaluate_words(model, choose_words(SENTENCES))
    assert 1e300 < found.perplexity < math.inf


def test_a_model_without_attention_is_measured_by_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    some = read_pairs()[::200]
    monkeypatch.setattr("core_models.evaluation.minimal_pairs.read_pairs", lambda path: some)
    saved("fnet", tmp_path / "m")
    assert main(["evaluate", "--model", str(tmp_path / "m"), "--json"]) == 0
    out, err = capsys.readouterr()
    assert "note: A fnet attends in a way of its own" in err
    found = json.loads(out)
    assert "attention" not in found
    assert {"minimal_pairs", "plain_sentences"} <= found.keys()


class _Knows(torch.nn.Module):
    """A discriminator that compares each token with the text."""

    def __init__(self, originals: dict[int, list[int]], certainty: float) -> None:
        super().__init__()
        self.originals, self.certainty = originals, certainty
        self.seen: torch.Tensor | None = None

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        assert self.seen is not None
        right = torch.tensor([self.originals[self.seen.shape[1]]])
        return torch.where(self.seen == right, -1.0, 1.0) * self.certainty


@pytest.mark.parametrize(("certainty", "auc"), [(3.0, 1.0), (0.0, 0.5), (-3.0, 0.0)])
def test_forgeries_are_counted(model: cm.Model, certainty: float, auc: float) -> None:
    sentences = SENTENCES[:3]
    judge = cm.Model.new(model.config, model.tokenizer, heads=["replaced_token"]).eval()
    lengths = {len(e): list(e.ids) for e in (model.encode([s])[0] for s in sentences)}
    assert len(lengths) == 3
    head = _Knows(lengths, certainty)
    judge.heads["replaced_token"] = head
    judge.encoder.register_forward_pre_hook(
        lambda _, inputs: setattr(head, "seen", inputs[0].input_ids)
    )
    result = evaluate_forgeries(model, judge, sentences, rate=0.5, seed=3)
    assert result.auc == auc
    if certainty > 0:
        assert (result.accuracy, result.found, result.false_alarms) == (1.0, 1.0, 0.0)
    if certainty < 0:
        assert (result.accuracy, result.found, result.false_alarms) == (0.0, 0.0, 1.0)
    assert result.tokens == sum(len(e) - 2 for e in (model.encode([s])[0] for s in sentences))
    assert 0 < result.replaced <= 0.6
    assert evaluate_forgeries(model, judge, sentences, rate=0.5, seed=3) == result


def test_a_sentence_without_a_piece_is_named(model: cm.Model) -> None:
    judge = cm.Model.new(model.config, model.tokenizer, heads=["replaced_token"]).eval()
    with pytest.raises(InputError, match="Sentence 2: The text holds only characters that"):
        evaluate_forgeries(model, judge, [SENTENCES[0], "\u200b"])
    with pytest.raises(InputError, match="rate is 0; it must be a number above 0"):
        evaluate_forgeries(model, judge, SENTENCES, rate=0)


@pytest.fixture(scope="module")
def chinese() -> cm.Tokenizer:
    primer = Path(__file__).parents[2] / "assets" / "primer" / "chinese-world.txt"
    lines = primer.read_text(encoding="utf-8").split("\n")[:120]
    return cm.Tokenizer.train([line for line in lines if line], vocabulary=1200)


def test_the_language_of_a_vocabulary(chinese: cm.Tokenizer) -> None:
    assert language_of(chinese) == "zh"
    assert language_of(cm.load("bert-mini").tokenizer) == "en"
    mixed = cm.Tokenizer.train([*SENTENCES, "\u6cb3\u6c34"] * 3, vocabulary=200)
    assert language_of(mixed) == "en"


def test_a_chinese_vocabulary_is_told_in_signs_for_bytes_too() -> None:
    """No Chinese character shows there; all byte-level vocabularies counted as English."""
    primer = Path(__file__).parents[2] / "assets" / "primer" / "chinese-world.txt"
    lines = [line for line in primer.read_text(encoding="utf-8").split("\n")[:400] if line]
    assert language_of(cm.Tokenizer.train(lines, vocabulary=1000, kind="byte_bpe")) == "zh"
    english = cm.Tokenizer.train(SENTENCES * 3, vocabulary=300, kind="byte_bpe")
    assert language_of(english) == "en"


def test_a_chinese_model_is_asked_for_characters_only(
    chinese: cm.Tokenizer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = cm.size("bert-tiny").with_vocabulary(chinese.vocabulary)
    cm.Model.new(config, chinese, generator=torch.Generator().manual_seed(1)).save(tmp_path / "m")
    text = tmp_path / "text.txt"
    text.write_text("\u4ed6\u4eca\u5929\u6765\u4e86\u3002\n", encoding="utf-8")
    model = str(tmp_path / "m")
    assert main(["evaluate", "--model", model, "--text", str(text), "--json"]) == 0
    shown = capsys.readouterr()
    found = json.loads(shown.out)
    assert found["words"]["words"] == 5
    assert set(found) == {"model", "words", "plain_sentences", "attention"}
    assert found["plain_sentences"]["asked"] == 30
    assert "left out" in shown.err
    assert main(["evaluate", "--model", model, "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)) == {"model", "plain_sentences", "attention"}


@pytest.mark.slow
def test_a_vocabulary_without_capitals_is_measured_by_the_rest(
    model: cm.Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model.save(tmp_path / "m")
    assert main(["evaluate", "--model", str(tmp_path / "m"), "--json"]) == 0
    out, err = capsys.readouterr()
    assert "note: No capital" in err
    found = json.loads(out)
    assert "capitals" not in found
    assert {"minimal_pairs", "plain_sentences"} <= found.keys()


@pytest.mark.slow
def test_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    some = read_pairs()[::20]
    monkeypatch.setattr("core_models.evaluation.minimal_pairs.read_pairs", lambda path: some)
    words = Tokenizer.train([*SENTENCES, "paris paris rome rome"], vocabulary=100)
    config = replace(cm.size("bert-tiny"), schedule=(0,)).with_vocabulary(words.vocabulary)
    model = cm.Model.new(config, words, generator=torch.Generator().manual_seed(1)).eval()
    model.save(tmp_path / "m")
    text = tmp_path / "held-out.txt"
    text.write_text("\n".join(SENTENCES), encoding="utf-8")
    command = ["evaluate", "--model", str(tmp_path / "m"), "--text", str(text), "--json"]
    assert main([*command, "--words", "9"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["words"]["words"] == 9
    by_hand = evaluate_minimal_pairs(model, some)
    assert found["minimal_pairs"]["accuracy"] == pytest.approx(by_hand.accuracy)
    assert "text_pairs" not in found  # one document has no stranger
    text.write_text("\n\n".join("\n".join(SENTENCES[::way]) for way in (1, -1)), encoding="utf-8")
    assert main([*command, "--words", "9"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["text_pairs"]["head"] == "next_sentence"
    assert found["text_pairs"]["pairs"] == 2
    assert main(["evaluate", "--generator", "bert-mini"]) == 2
    assert "needs --text" in capsys.readouterr().err


@pytest.mark.parametrize("values", [None, 3, "ab", [None], [("a", "b")]])
def test_what_is_to_be_measured_of_another_kind_is_refused(model: cm.Model, values: object) -> None:
    for measure in (
        evaluate_minimal_pairs,
        evaluate_plain_sentences,
        evaluate_text_pairs,
        evaluate_words,
    ):
        with pytest.raises(InputError, match="must"):
            measure(model, values)  # type: ignore[arg-type, operator]


@pytest.mark.parametrize(
    "wrong",
    [
        {"sentences": None},
        {"sentences": 3},
        {"rate": "x"},
        {"rate": math.nan},
        {"rate": None},
        {"seed": None},
        {"seed": -1},
        {"seed": 1.5},
    ],
)
def test_forgeries_refuse_what_is_no_value(model: cm.Model, wrong: dict[str, object]) -> None:
    with pytest.raises(InputError, match=r"must be|is"):
        evaluate_forgeries(model, model, **{"sentences": SENTENCES, **wrong})  # type: ignore[arg-type]
