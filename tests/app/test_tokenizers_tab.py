"""The Tokenizers lab without a browser: cuts, bytes, word groups, templates, files, bad input."""

import json
import shutil
from xml.etree import ElementTree

import gradio as gr
import pytest

import core_models as cm
from app.labs.tokenizers import answers as tokenizers
from app.labs.tokenizers import lab, tables
from app.labs.tokenizers.pieces import Pieces
from core_models import InputError
from viz.svg import told

ENGLISH = "Unbelievable! The café's 3 pyramids weren't re-built."
CHINESE = "北京是中国的首都，位于华北平原的北部。"
LINES = (ENGLISH, CHINESE, "I love 北京 😀 龘 .", " two  blanks and a\ttab ", "<s> [MASK] x <mask>")


def ask(session, answer=lab.rows, **question):
    return answer(session, {"model": "bert-mini", "text": ENGLISH, **question})


def shown(session, **question):
    """What the lab shows of a sentence: example, line, boxes, code."""
    sentence = {"model": "bert-mini", "text": ENGLISH, **question}
    return lab.show(session, {"sentence": sentence, "example": None})


@pytest.mark.parametrize("kind", tokenizers.KINDS)
@pytest.mark.parametrize("line", LINES)
def test_pieces_are_those_of_the_tokenizer(kind, line):
    tokenizer = cm.Tokenizer.from_folder(tokenizers.FOLDER / kind)
    encoding = tokenizer.encode(line)
    found = tokenizers.cut(tokenizer, line)
    assert [piece["id"] for piece in found.pieces] == encoding.ids
    assert [piece["word"] for piece in found.pieces] == encoding.words
    assert found.content == sum(not special for special in encoding.special)
    assert found.words == len({word for word in encoding.words if word is not None})


@pytest.mark.parametrize("line", LINES)
def test_bytes_under_byte_level_pieces_are_the_whole_text(line):
    found = tokenizers.cut(tokenizers.shipped("byte_bpe"), line)
    assert bytes.fromhex("".join(piece["bytes"] for piece in found.pieces)) == line.encode()


@pytest.mark.parametrize("line", ["Hi Hi", "北 京", "I like 龘", *LINES[:3]])
def test_a_blank_that_a_vocabulary_puts_before_a_text_stands_for_nothing(line, tmp_path):
    found = tokenizers.cut(tokenizers.shipped("unigram"), line)
    assert bytes.fromhex("".join(piece["bytes"] for piece in found.pieces)) == line.encode()
    # As byte-level vocabularies with "add_prefix_space" do.
    shutil.copytree(tokenizers.FOLDER / "byte_bpe", tmp_path / "blank")
    path = tmp_path / "blank" / "tokenizer.json"
    read = json.loads(path.read_text("utf-8"))
    read["pre_tokenizer"]["add_prefix_space"] = True
    path.write_text(json.dumps(read), "utf-8")
    blank = cm.Tokenizer.from_folder(tmp_path / "blank")
    found = tokenizers.cut(blank, line)
    first = found.pieces[1]
    assert first["piece"].startswith("\u0120")
    assert bytes.fromhex(first["bytes"]) == line.encode()[: len(first["piece"]) - 1]
    assert bytes.fromhex("".join(piece["bytes"] for piece in found.pieces)) == line.encode()


def test_a_character_split_in_bytes_shows_each_byte():
    found = tokenizers.cut(tokenizers.shipped("byte_bpe"), "😀")
    assert [piece["bytes"] for piece in found.pieces[1:-1]] == ["f0", "9f", "98", "80"]
    assert found.unknown == 0


def test_what_is_unknown_differs_by_kind():
    unknown = {
        kind: tokenizers.cut(tokenizers.shipped(kind), "I like 龘 .").unknown
        for kind in tokenizers.KINDS
    }
    assert unknown == {"wordpiece": 1, "byte_bpe": 0, "unigram": 1}


def test_what_a_whole_word_is_differs_by_kind():
    words = {
        kind: tokenizers.cut(tokenizers.shipped(kind), CHINESE).words for kind in tokenizers.KINDS
    }
    # Nineteen characters and marks; the other kinds have pieces of several characters.
    assert words == {"wordpiece": 19, "byte_bpe": 14, "unigram": 12}


def test_ratios_are_pieces_over_words_and_characters(session):
    own = ask(session)[0]
    encoding = session.model("bert-mini").tokenizer.encode(ENGLISH)
    letters = sum(not character.isspace() for character in ENGLISH)
    assert own.content == len(encoding) - 2
    assert own.per_character == pytest.approx((len(encoding) - 2) / letters)
    assert own.per_word == pytest.approx((len(encoding) - 2) / own.words)


def test_the_shipped_vocabularies_are_small_and_of_their_kind():
    for kind in tokenizers.KINDS:
        tokenizer = tokenizers.shipped(kind)
        assert (tokenizer.kind, tokenizer.vocabulary) == (kind, 6000)
        files = list((tokenizers.FOLDER / kind).iterdir())
        assert max(file.stat().st_size for file in files) < 1_000_000


def test_every_family_stands_under_its_template(session):
    rows = tables.frames([])["rows"]
    frames = {row[0]: row[3] for row in rows}
    assert frames["RoBERTa"] == "<s> A </s>"
    assert frames["XLNet"] == "A <sep> <cls>"
    assert frames["EuroBERT"] == "<|begin_of_text|> A <|end_of_text|>"
    assert {row[0]: row[7] for row in rows}["EuroBERT"] == "<|mask|>"
    assert {frames[name] for name in ("BERT", "ALBERT", "ELECTRA", "DeBERTa v3")} == {
        "[CLS] A [SEP]"
    }
    assert len(rows) == len(cm.family_names())


def test_models_that_differ_from_the_published_ones_say_how():
    """The shipped SpanBERT reads small letters; XLNet and DeBERTa frame a text otherwise."""
    infos = [
        cm.ModelInfo(
            name=name,
            family=family,
            title=name,
            description="",
            heads=(),
            parameters=1,
            folder=tokenizers.FOLDER.parent / "models" / name,
        )
        for name, family in (
            ("bert-mini", "bert"),
            ("spanbert-mini", "spanbert"),
            ("xlnet-mini", "xlnet"),
            ("deberta-mini", "deberta"),
            ("roberta-mini", "roberta"),
            ("gone", "bert"),
        )
    ]
    assert tokenizers.differences(infos) == {
        "spanbert": [{"model": "spanbert-mini", "lowercase": True}],
        "xlnet": [
            {
                "model": "xlnet-mini",
                "single": "A [SEP] [CLS]",
                "pair": "A [SEP] B [SEP] [CLS]",
                "mask": "[MASK]",
            }
        ],
        "deberta": [
            {
                "model": "deberta-mini",
                "single": "<s> A </s>",
                "pair": "<s> A </s> B </s>",
                "mask": "<mask>",
            }
        ],
    }


def test_the_summary_says_what_it_counts(session):
    text = "Unbelievable! A b c."
    key, *values = told(shown(session, text=text)[1])
    letters = len(text.replace(" ", ""))
    assert key.endswith("for the same {4} characters (blanks not counted).")
    assert values[4] == str(letters)
    assert ["Byte-level BPE"] in values  # a kind is a wording, for the language of the page
    assert "bert-mini" not in [each[0] for each in values if isinstance(each, list)]


def test_one_is_not_said_as_several(session):
    assert shown(session, text="a")[1] == "Every vocabulary cuts this into one piece."
    said = shown(session, text="北")[1]
    assert said == "Unigram needs 2 pieces, bert-mini 1, for the same character."
    rows = Pieces().postprocess(ask(session, text="a"))["rows"]
    assert {row["counts"] for row in rows} == {"1 piece, 1 word"}
    rows = Pieces().postprocess(ask(session, text="Hi Hi"))["rows"]
    assert rows[0]["counts"] == "4 pieces, 2 words"
    assert "WordPiece: 1 piece, 1 word" in tables.picture(ask(session, text="a"))


def test_a_text_that_is_cut_off_is_not_compared_by_its_pieces(session):
    text = "The café met 我们 . " * 300
    rows = ask(session, text=text)
    assert {row.content for row in rows} == {254}
    key, *values = told(tokenizers.summary(rows))
    assert key.startswith("The text is too long")
    far = [row.characters for row in rows]
    assert (values[1], values[3]) == (str(max(far)), str(min(far)))


def test_templates_of_pairs_and_segments():
    rows = {row[0]: row for row in tables.frames([])["rows"]}
    assert rows["RoBERTa"][4] == "<s> A </s> </s> B </s>"
    assert (rows["RoBERTa"][5], rows["BERT"][5]) == ("no segments", "0 0 0 1 1, from a table")
    assert (rows["XLNet"][5], rows["XLNet"][6]) == ("0 0 1 1 2, in the scores", "left")


def test_a_model_that_differs_stands_below_its_family():
    info = cm.ModelInfo(
        name="spanbert-mini",
        family="spanbert",
        title="",
        description="",
        heads=(),
        parameters=1,
        folder=tokenizers.FOLDER.parent / "models" / "spanbert-mini",
    )
    rows = tables.frames([info])["rows"]
    here = next(n for n, row in enumerate(rows) if row[0] == "spanbert-mini here")
    assert rows[here - 1][:3] == ["SpanBERT", "WordPiece", "keeps case"]
    assert rows[here][1:] == [None, "lower case", None, None, None, None, None]


def test_an_example_is_known_by_its_text(session):
    text = tokenizers.EXAMPLES["Both"]
    sentence = {"model": "bert-mini", "text": text}
    (choice, *_) = lab.show(session, {"sentence": sentence, "example": None})
    assert choice.value == "Both"
    (choice, *_) = lab.show(session, {"sentence": sentence, "example": "Both"})
    assert choice == gr.skip()


def test_a_long_text_is_cut_off_and_says_so(session):
    rows = ask(session, text="word " * 3000)
    assert all(row.truncated and len(row.pieces) == 256 for row in rows)


def test_the_table_has_a_row_for_each_piece(session):
    rows = ask(session, text="a 龘")
    sentence = {"model": "bert-mini", "text": "a 龘"}
    (table,) = lab.tabled(session, tables.every_piece, {"sentence": sentence})
    assert len(table["rows"]) == sum(len(row.pieces) for row in rows)
    assert [row[6] for row in table["rows"] if row[0] == "WordPiece"] == [
        *("special", None, "unknown", "special"),
    ]


def test_the_svg_opens_whatever_the_text_holds(session):
    sentence = {"model": "bert-mini", "text": "a <b> & \x07 北京 😀"}
    (drawing,) = lab.save(session, {"sentence": sentence})
    assert "北京" in "".join(ElementTree.fromstring(drawing).itertext())


def test_the_code_loads_the_model_of_a_run_from_its_folder(session, monkeypatch):
    loaded = session.model("bert-mini")
    monkeypatch.setattr(session, "model", lambda name: loaded)
    assert "cm.load('runs/mine/model')" in shown(session, model="run/mine")[3]


def test_the_code_of_the_page_gives_its_pieces(session, monkeypatch):
    monkeypatch.chdir(tokenizers.FOLDER.parent.parent)
    printed: list = []
    exec(shown(session)[3], {"print": lambda *values: printed.append(values)})
    assert [ids for _, _, ids, _ in printed] == [
        [piece["id"] for piece in row.pieces] for row in ask(session)
    ]


@pytest.mark.parametrize(
    ("question", "word"),
    [
        ({"text": ""}, "no text"),
        ({"text": 3}, "no text"),
        ({"text": "x" * 20_001}, "20,001"),
        ({"text": "\x00"}, "characters that cannot be shown"),
        ({"model": "../etc"}, "no model"),
    ],
)
def test_bad_questions_get_a_sentence(session, question, word):
    with pytest.raises(InputError, match=word):
        shown(session, **question)


def test_nothing_is_saved_of_nothing(session):
    with pytest.raises(InputError, match="no text"):
        lab.save(session, {"sentence": None})
