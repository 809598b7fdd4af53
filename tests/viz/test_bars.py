"""Bars as SVG: lengths, texts that anybody may have typed."""

import xml.etree.ElementTree as ElementTree

import pytest

from viz.bars import FULL, Bar, Group, bars_svg

SPACE = "{http://www.w3.org/2000/svg}"
EVIL = '<script>alert("1")</script>&\x00'


def read(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def widths(svg: str) -> list[float]:
    """Of the bars, without the paper and the tracks."""
    boxes = [box for box in read(svg).iter(f"{SPACE}rect") if box.get("rx")]
    return [float(box.get("width", "")) for box in boxes[1::2]]


def test_a_bar_is_as_long_as_its_share():
    bars = [Bar(label="paris", share=0.25, shown="25 %"), Bar(label="rome", share=0, shown="0 %")]
    svg = bars_svg([Group(title="one", bars=bars), Group(title="two", bars=bars[:1])], title="T")
    assert widths(svg) == [FULL * 0.25, 0, FULL * 0.25]
    texts = [text.text for text in read(svg).iter(f"{SPACE}text")]
    assert texts == ["T", "one", "paris", "25 %", "rome", "0 %", "two", "paris", "25 %"]


def test_texts_are_escaped_and_long_ones_cut():
    bar = Bar(label=EVIL + "词" * 90, share=1, shown=EVIL, loud=True)
    svg = bars_svg([Group(title=EVIL, bars=[bar])], title=EVIL * 20)
    assert "<script" not in svg
    texts = [text.text or "" for text in read(svg).iter(f"{SPACE}text")]
    assert texts[2].startswith("<script>alert")
    assert texts[2].endswith("…")


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ValueError, match="nothing"):
        bars_svg([Group(title="", bars=[])], title="")
    with pytest.raises(ValueError, match=r"1\.5"):
        bars_svg([Group(title="", bars=[Bar(label="a", share=1.5, shown="")])], title="")
