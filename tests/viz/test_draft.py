"""Drafts are what Plotly would have made of the same calls, and are checked when they are made."""

import copy
import json
import pickle

import numpy as np
import plotly.graph_objects as go
import pytest
from plotly.io.json import to_json_plotly
from plotly.subplots import make_subplots

from viz.draft import Draft
from viz.figure import Chart, payload
from viz.svg import Wording


def plain(values):
    found = json.loads(to_json_plotly(values))
    found["layout"].pop("template", None)
    return found


def draw(figure):
    figure.add_scatter(x=[1, 2, None], y=np.float32([1, 2, 3]), name="a", line={"color": "red"})
    figure.add_bar(x=["a"], y=[1], marker={"color": "blue", "opacity": None}, text=["<b>"])
    figure.add_heatmap(z=np.eye(2, dtype=np.float32), zmin=0, showscale=False)
    figure.update_layout(
        title={"text": "t"}, margin={"t": 3}, meta={"rows": [[1, None]], "no": None}
    )
    figure.update_layout({"margin": {"b": 4}}, xaxis2={"overlaying": "x"}, paper_bgcolor="white")
    figure.update_layout(annotations=[{"text": "a", "x": 1}, {"text": "b"}])
    figure.update_layout(annotations=[{"y": 2}, {"x": 5, "text": "c"}])
    figure.update_xaxes(range=[0, 1], title={"text": "x"}, tickvals=(1, 2))
    figure.update_xaxes(showgrid=False)
    figure.update_yaxes(ticksuffix=" %")
    figure.add_vline(2, line={"width": 1})
    figure.add_hline(3, line={"dash": "dot"})
    figure.add_vrect(1, 2, fillcolor="red", line={"width": 0}, layer="below")
    figure.add_shape(type="rect", x0=0, x1=1, y0=0, y1=1)


def test_a_draft_is_what_plotly_makes_of_the_same_calls():
    draft, made = Draft(), go.Figure()
    draw(draft)
    draw(made)
    assert draft.draft is not None
    assert plain(draft.drawn()) == plain(made.to_dict())
    assert plain(draft.to_dict()) == plain(made.to_dict())
    assert draft.draft is None
    assert plain(draft.drawn()) == plain(made.to_dict())


@pytest.mark.parametrize(
    "ask",
    [
        lambda figure: figure.add_annotation(text="a", x=1, y=1),
        lambda figure: figure.update_layout(title_text="b"),
        lambda figure: figure.update_xaxes(title_text="x"),
        lambda figure: figure.add_scattergl(x=[1], y=[2]),
        lambda figure: figure.update_traces(name="z"),
        lambda figure: figure.add_vline(2, annotation_text="a"),
        lambda figure: figure.add_hline(2, annotation={"text": "a"}, line_dash="dot"),
        lambda figure: figure.add_vrect(x0=1, x1=2, annotation_text="a"),
        lambda figure: figure.add_shape({"type": "line", "x0": 0, "x1": 1, "y0": 0, "y1": 1}),
        lambda figure: figure.update_xaxes({"title": {"text": "x"}}),
        lambda figure: figure.update_yaxes(title="y", selector={"ticksuffix": " %"}),
        lambda figure: figure.update_layout({"title": {"text": "x"}}, overwrite=True),
    ],
)
def test_what_a_draft_does_not_know_is_plotlys_from_then_on(ask):
    draft, made = Draft(), go.Figure()
    for figure in (draft, made):
        draw(figure)
        ask(figure)
        figure.update_layout(height=300)
        figure.add_scatter(x=[1], y=[1])
    assert draft.draft is None
    assert plain(draft.drawn()) == plain(made.to_dict())


def test_what_is_drawn_is_a_copy():
    draft = Draft()
    draw(draft)
    drawn = draft.drawn()
    drawn["layout"]["margin"]["t"] = 99
    drawn["data"][0]["line"]["color"] = "green"
    assert draft.layout.margin.t == 3
    assert draft.data[0].line.color == "red"


def test_what_is_wrong_is_said_when_the_figure_is_made():
    draft = Draft().add_scatter(x=[1], y=[1], mode="zigzag")
    with pytest.raises(ValueError, match="zigzag"):
        draft.make()


def test_a_figure_keeps_what_it_was_made_of():
    draft = Draft(
        [go.Bar(x=["a"], y=[1]), {"type": "scatter", "x": [1], "y": [2]}], {"height": 300}
    )
    assert [trace["type"] for trace in draft.drawn()["data"]] == ["bar", "scatter"]
    assert draft.layout.height == 300
    assert not hasattr(draft, "no_such_thing")


def drawn(made):
    figure = Chart(go.Bar(x=["a"], y=np.float32([1]), name=Wording("Layer {0}", 3)))
    draw(figure)
    if made:
        figure.make()
    return figure


@pytest.mark.parametrize("made", [False, True])
@pytest.mark.parametrize(
    "again", [copy.deepcopy, copy.copy, lambda f: pickle.loads(pickle.dumps(f))]
)
def test_a_copy_is_the_same_chart_and_one_of_its_own(again, made):
    figure = drawn(made)
    shown = to_json_plotly(payload(figure))
    copied = again(figure)
    assert (figure.draft is None, copied.draft is None) == (made, made)
    assert type(copied) is Chart
    assert to_json_plotly(payload(copied)) == shown
    copied.update_layout(title={"text": "other"}, margin={"t": 99})
    copied.add_shape(type="line", x0=0, x1=1, y0=0, y1=1)
    assert to_json_plotly(payload(figure)) == shown
    assert copied.to_json() != figure.to_json() == drawn(False).to_json()


def test_a_grid_of_charts_may_hang_on_a_draft_and_on_its_copy():
    figure = make_subplots(rows=1, cols=2, shared_yaxes=True, figure=Draft())
    made = make_subplots(rows=1, cols=2, shared_yaxes=True)
    assert figure.draft is not None
    for each in (figure, copied := copy.deepcopy(figure), made):
        each.add_scatter(x=[1], y=[1], row=1, col=2)
    assert plain(figure.drawn()) == plain(copied.drawn()) == plain(made.to_dict())
    for each in (again := copy.deepcopy(figure), made):
        each.update_xaxes(range=[0, 1], row=1, col=2)
    assert plain(again.drawn()) == plain(made.to_dict())
