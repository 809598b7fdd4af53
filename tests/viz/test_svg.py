"""Marks of the program's own texts: where they are, what they hold; no visitor's text has one."""

import copy
import json
import pickle
from xml.etree import ElementTree

import pytest

from viz import (
    bars,
    budget,
    ladder,
    pairs,
    permutation,
    terms,
    timeline,
    tokenizers,
    training,
    verdicts,
)
from viz.svg import (
    Wording,
    caption,
    document,
    listed,
    mark,
    shorten,
    text_width,
    told,
    write,
)

HEADINGS = ("Attention", "from", "to", "not seen", "Pieces", "{0}", '["from"]')
"""Texts of a visitor that are the program's, too, or look like a mark."""


def marks(svg: str) -> list[str]:
    """Texts of the marked elements; every mark says what its element does."""
    found = []
    for node in ElementTree.fromstring(svg).iter():
        if (said := node.get("data-wording")) is not None:
            found.append("".join(node.itertext()))
            assert read(json.loads(said)) == found[-1]
    return found


def read(said: list) -> str:
    """The English text of a mark, as the page puts it together."""
    key, *values = said
    return Wording(key, *(read(value) if isinstance(value, list) else value for value in values))


def test_a_wording_reads_as_its_text():
    place = Wording("layer {0}, head {1}", 3, 2)
    said = Wording("{1} of {0}", "{1}", place)
    assert (said, place) == ("layer 3, head 2 of {1}", "layer 3, head 2")
    assert (place.key, place.values) == ("layer {0}, head {1}", ("3", "2"))
    assert json.loads(json.dumps([place])) == ["layer 3, head 2"]
    for plain in (place + "", f"{place}", place.lower(), place[:5], "".join([place])):
        assert type(plain) is str
    for again in (copy.deepcopy(said), pickle.loads(pickle.dumps(said))):
        assert mark(again) == mark(said)
    with pytest.raises(IndexError):
        Wording("{0} and {1}", "one")
    title = Wording("probe: {0}", Wording("{0} {1} of a file"))
    assert title == "probe: {0} {1} of a file", "no mark of the program's own"


def test_a_mark_holds_key_and_values():
    said = Wording("{0}: “{1}”", 'a "<b>" & \x07', Wording("from"))
    root = ElementTree.fromstring(write(0, 0, said).replace("xml:space", "space"))
    assert json.loads(root.get("data-wording", "")) == [
        "{0}: “{1}”",
        'a "<b>" & \N{REPLACEMENT CHARACTER}',
        ["from"],
    ]
    assert mark("from") == mark("") == ""
    assert marks(f"<g>{caption(Wording('to'))}{caption('to')}</g>") == ["to"]
    assert marks(document(1, 1, Wording("Attention"), [write(0, 0, "Attention")])) == ["Attention"]


def test_a_long_text_is_shortened_in_a_few_tries():
    tries = []

    def fits(text):
        tries.append(text)
        return len(text) <= 10

    assert shorten("a" * 20_000, fits) == "a" * 9 + "…"
    assert str(shorten(Wording("{0}!", "a" * 20_000), fits)) == "a" * 8 + "…!"
    assert len(tries) < 50
    assert [shorten("abc"[:n], lambda text: not text) for n in range(4)] == ["", "…", "…", "…"]


def test_of_a_wording_only_a_value_is_cut():
    long = "x" * 90
    assert shorten("abcdef", lambda text: len(text) <= 4) == "abc…"
    assert shorten("abcd", lambda text: len(text) <= 4) == "abcd"
    fits = lambda text: text_width(text) <= text_width("n" * 20)  # noqa: E731
    for value, shown in ((long, "x" * 12), ("词" * 90, "词" * 6)):
        said = shorten(Wording("{0}: {1}{2}", "First", value, Wording("")), fits)
        assert said == f"First: {shown}…"
        assert (said.key, said.values[0]) == ("{0}: {1}{2}", "First")
    assert mark(shorten(Wording(long), fits)) == mark(Wording(long))


def pictures(text: str) -> dict[str, str]:
    """Every kind of picture; all that a visitor may have written is ``text``."""
    bar = bars.Bar(label=text, share=1, shown=text)
    mask = permutation.Mask(title=text, rows=[0], seen=[[True]])
    term = terms.TermMap(title=text, values=[[1.0, float("nan")]], top=1.0)
    piece = tokenizers.Piece(text=text, number=1, word=None)
    columns = (text, text)
    return {
        "bars": bars.bars_svg([bars.Group(title=text, bars=[bar])], title=text),
        "permutation": permutation.masks_svg([mask], [text], title=text),
        "terms": terms.maps_svg([term], rows=[text], columns=columns, title=text),
        "tokenizers": tokenizers.pieces_svg(
            [tokenizers.Line(title=text, pieces=[piece])], title=text
        ),
        "verdicts": verdicts.verdicts_svg(
            [verdicts.Judged(text=text, chance=0.5, note=text)], title=text
        ),
    }


OWN = {
    "pairs": [str(Wording("under {0}", "0.01\N{NO-BREAK SPACE}%"))],
    "terms": ["{0} → {0}: not seen"],
}
"""Marked texts of each picture that a visitor's text can do nothing about, but stand in."""


@pytest.mark.parametrize("text", HEADINGS)
def test_what_a_visitor_wrote_has_no_mark(text):
    for kind, svg in pictures(text).items():
        wanted = [own.format(text) for own in OWN.get(kind, [])]
        assert marks(svg) == wanted, kind


def test_what_the_program_says_has_one():
    drawn = pictures(Wording("Attention"))
    for kind, svg in drawn.items():
        assert marks(svg)[:2] == ["Attention"] * 2, kind


def test_texts_one_after_the_other_can_be_translated():
    found = listed([Wording("own size"), "b", Wording("{0} {1}", Wording("Pieces"), 3)])
    assert found == "own size, b, Pieces 3"
    first, second = told(found)[1:]
    assert first == ["{0}, {1}", ["own size"], "b"]
    assert second == ["{0} {1}", ["Pieces"], "3"]
    assert listed([]) == ""


def test_what_charts_say_of_their_pictures_keeps_its_wordings():
    ours = Wording("own size")
    parts = {"pieces": 1}
    curve = training.Curve(name="r", number=0, points=[(0, 1.0)])
    count = pairs.Count(of_all=1, said="1")
    figures = [
        budget.bars({ours: parts}, {"pieces": Wording("Pieces")}),
        ladder.climb([ladder.Reached(title=ours, value=None)], chosen=0, figure="f"),
        timeline.growth({ours: [1.0]}),
        training.several({"loss": [curve]}, {"loss": ours}, by="step"),
        pairs.scores({ours: [count]}, ["c"], examples=2, title="t"),
    ]
    for figure in figures:
        assert '["own size"]' in json.dumps(told(figure.layout.meta["alt"]))
