"""The look of charts, and what a page gets of one."""

import json

import plotly.graph_objects as go
import pytest
from plotly.io.json import to_json_plotly

from viz.figure import DARK, LIGHT, Chart, finish, payload, plain, safe, series, templates, twins
from viz.svg import Wording


def bars() -> go.Figure:
    figure = Chart(go.Bar(x=[plain("<b>a</b>")], y=[1], name=Wording("Layer {0}", 3)))
    return finish(
        figure,
        Wording("Parameters by part"),
        alt="One bar.",
        columns=[Wording("Part"), "n"],
        rows=[["<b>a</b>", 1]],
        y=Wording("Parameters"),
    )


def test_a_label_holds_no_markup_and_nothing_that_a_saved_picture_cannot():
    assert plain("a\0<b>\x08 \U0001f600\n&") == "a\ufffd&lt;b&gt;\ufffd \U0001f600\n&amp;"
    assert plain("%{x} 5 %") == "%&#123;x} 5 %"


def test_texts_of_the_program_can_be_translated_and_those_of_visitors_not():
    found = payload(bars())
    told = {json.dumps(path): words for path, words in found["words"]}
    assert told == {
        '["data", 0, "name"]': ["Layer {0}", "3"],
        '["layout", "title", "text"]': ["Parameters by part"],
        '["layout", "meta", "columns", 0]': ["Part"],
        '["layout", "yaxis", "title", "text"]': ["Parameters"],
    }
    assert list(found["data"][0]["x"]) == ["&lt;b&gt;a&lt;/b&gt;"]
    assert found["layout"]["meta"]["rows"] == [["<b>a</b>", 1]]


def test_the_look_does_not_travel_with_each_figure():
    found = payload(bars())
    assert "template" not in found["layout"]
    assert len(to_json_plotly(found)) < 1000


def test_a_notebook_shows_the_english_text():
    shown = json.loads(bars().to_json())
    assert shown["layout"]["title"]["text"] == "Parameters by part"
    assert shown["data"][0]["name"] == "Layer 3"
    assert shown["layout"]["template"]["layout"]["paper_bgcolor"] == LIGHT["paper"]


def test_a_name_in_hover_is_whole():
    shown = json.loads(bars().to_json())
    assert shown["layout"]["template"]["layout"]["hoverlabel"]["namelength"] == -1
    assert templates()["dark"]["layout"]["hoverlabel"]["namelength"] == -1


def test_a_template_of_a_reader_of_the_notebook_stays():
    figure = bars()
    figure.update_layout(template="plotly_dark")
    assert (
        json.loads(figure.to_json())["layout"]["template"]["layout"]["paper_bgcolor"]
        != LIGHT["paper"]
    )


def test_a_table_with_a_missing_cell_is_refused():
    with pytest.raises(ValueError, match="2 cells"):
        finish(Chart(), "t", alt="", columns=["a", "b"], rows=[["x"]])


def test_long_tables_say_how_many_rows_are_left_out():
    figure = finish(Chart(), "t", alt="", columns=["a"], rows=[[n] for n in range(2503)])
    assert len(figure.layout.meta["rows"]) == 2500
    assert figure.layout.meta["left_out"] == 3


def test_each_light_colour_has_one_dark_twin():
    assert LIGHT.keys() == DARK.keys()
    assert len(set(LIGHT.values())) == len(LIGHT)
    assert twins()[series(0)] == DARK["model"]
    assert series(8) == series(0)


def test_templates_are_plain_json():
    found = json.loads(json.dumps(templates()))
    assert found["dark"]["layout"]["paper_bgcolor"] == DARK["paper"]
    assert found["print"]["layout"]["paper_bgcolor"] == "#ffffff"


def test_of_a_wording_only_what_a_visitor_wrote_is_escaped():
    text = safe(Wording("{0}<br>{1}", Wording("no <i>"), "<b>%{x}"))
    assert text == "no <i><br>&lt;b&gt;%&#123;x}"
    assert text.values[0].key == "no <i>"
    assert safe("<b>") == "&lt;b&gt;"


def test_rows_that_were_left_out_before_are_counted_too():
    rows = [[n] for n in range(2503)]
    figure = finish(Chart(), "t", alt="", columns=["a"], rows=rows, left_out=4)
    assert figure.layout.meta["left_out"] == 7


def test_titles_read_no_markup_in_what_is_not_ours() -> None:
    """Names of models are those of folders; the program's own words may hold what they like."""
    title = Wording("{0}: <i>{1}</i>", "<b>folder", Wording("layer {0}", 1))
    told = finish(go.Figure(), title, alt="", columns=[], rows=[], x="<a>", y=title).layout
    assert told.title.text == told.yaxis.title.text == "&lt;b&gt;folder: <i>layer 1</i>"
    assert told.xaxis.title.text == "&lt;a&gt;"
