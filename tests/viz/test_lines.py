from xml.etree import ElementTree

import numpy as np
import pytest

import viz

NAMESPACE = {"svg": "http://www.w3.org/2000/svg"}
LABELS = ["[CLS]", "capital", "of", "[SEP]"]
WEIGHTS = np.array(
    [[0.7, 0.1, 0.1, 0.1], [0.005, 0.4, 0.595, 0.0], [0.1, 0.8, 0.1, 0.0], [0.25] * 4],
    dtype=np.float32,
)


def draw(**options):
    return ElementTree.fromstring(viz.head_svg(WEIGHTS, LABELS, **options))


def lines(root):
    return root.findall("svg:path", NAMESPACE)


def texts(root):
    return ["".join(node.itertext()) for node in root.findall("svg:text", NAMESPACE)]


def test_links_of_at_least_one_percent_are_drawn():
    assert len(lines(draw())) == int((WEIGHTS >= 0.01).sum())


def test_the_strongest_line_is_the_thickest_and_on_top():
    widths = [float(line.get("stroke-width")) for line in lines(draw())]
    assert widths == sorted(widths)
    assert widths[-1] == pytest.approx(0.6 + 4.4 * 0.8, abs=0.01)


def test_every_label_stands_on_both_sides():
    found = texts(draw(title="Layer 1, head 2"))
    assert found[0] == "Layer 1, head 2"
    for label in LABELS:
        assert found.count(label) == 2


def test_focus_from_shows_one_row_with_numbers():
    root = draw(focus=viz.Focus(position=1, side="from"))
    assert len(lines(root)) == 2
    found = texts(root)
    assert "of\N{EN SPACE}60\N{NO-BREAK SPACE}%" in found
    assert "capital\N{EN SPACE}40\N{NO-BREAK SPACE}%" in found


def test_focus_to_shows_one_column():
    root = draw(focus=viz.Focus(position=1, side="to"))
    assert len(lines(root)) == 4
    assert "80\N{NO-BREAK SPACE}%\N{EN SPACE}of" in texts(root)


def test_hidden_tokens_are_left_out_without_renormalising():
    root = draw(keep=[1, 2])
    assert "[CLS]" not in texts(root)
    widths = sorted(float(line.get("stroke-width")) for line in lines(root))
    expected = sorted(0.6 + 4.4 * float(weight) for weight in WEIGHTS[1:3, 1:3].ravel())
    assert widths == pytest.approx(expected, abs=0.006)


def test_masked_tokens_have_the_second_colour():
    fills = {
        "".join(node.itertext()): node.get("fill")
        for node in draw(marked=[2]).findall("svg:text", NAMESPACE)
    }
    assert fills["of"] != fills["capital"]


@pytest.mark.parametrize(
    "label",
    ["<script>alert(1)</script>", "a & b", "\"'", "]]>", "مرحبا", "🙂", "\x00\x1b[0m", "\ud83d"],
)
def test_any_label_stays_text(label):
    text = viz.head_svg(np.eye(1), [label], title=label)
    root = ElementTree.fromstring(text.encode("utf-8"))
    assert not root.findall(".//svg:script", NAMESPACE)
    if label.isprintable():
        assert texts(root).count(label) == 3


def test_many_links_are_cut_and_counted():
    weights = np.full((40, 40), 1 / 40)
    root = ElementTree.fromstring(viz.head_svg(weights, ["x"] * 40))
    assert len(lines(root)) == 600
    assert texts(root)[-1].endswith("1000 of the weaker ones are left out.")


def test_bad_arguments():
    with pytest.raises(ValueError, match="labels"):
        viz.head_svg(np.eye(3), LABELS)
    with pytest.raises(ValueError, match="not among"):
        draw(keep=[0, 1], focus=viz.Focus(position=2, side="to"))
    with pytest.raises(ValueError, match="between 0 and 1"):
        viz.head_svg(np.full((1, 1), np.nan), ["x"])
