"""The Terms lab over rotary positions, without a browser: charts, choices and code."""

import pytest

from app.serving.session import Session
from core_models.prediction import terms_view
from core_models.prediction.rotation_view import layer_of, wavelengths
from tests.app.terms_models import WINDOW, save_tiny_models
from tests.app.test_terms_tab import TEXT, ask, mark


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    folder = tmp_path_factory.mktemp("with-turns")
    save_tiny_models(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLOZE_MODELS", str(folder))
        session = Session()
        yield session
        session.close()


@pytest.mark.parametrize("layer", [0, 1])
def test_rotary_positions_show_what_a_distance_is_worth_to_two_pieces(session, layer):
    values = {"model": "modernbert-tiny", "layer": layer, "head": 1, "query": 5, "key": 2}
    answer = ask(session, **values)
    shown = answer["shown"]
    loaded = session.model("modernbert-tiny")
    (encoding,) = loaded.encode([TEXT])
    kind, window, _ = layer_of(loaded.config, layer)
    assert (kind, window) == [("global", None), ("local", WINDOW)][layer]
    view = terms_view.look(loaded, encoding, step=layer, head=1).view
    scores = {row[0]: row[1:] for row in shown["turned"].layout.meta["rows"]}
    assert list(scores) == list(range(-64, 65))
    assert scores[3][0] == pytest.approx(float(view.terms[0][5, 2]), abs=1e-5)
    seen = [] if window is None else [[abs(r) <= WINDOW] for r in scores]
    assert [[s == "seen" for s in row[1:]] for row in scores.values() if row[1:]] == seen
    rows = shown["turned_row"].layout.meta["rows"]
    assert [row[2] for row in rows] == pytest.approx(view.terms[0][5].tolist(), abs=1e-5)
    assert rows[2][1] == pytest.approx(scores[0][0], abs=1e-5)
    assert [row[3] == "seen" for row in rows] == view.visible[5].tolist()
    assert f"Layer {layer + 1} is {kind}" in shown["turned_said"]
    assert [row[1][0] for row in shown["waves"]["rows"]] == pytest.approx(
        wavelengths(8, 160_000 if layer == 0 else 10_000)
    )
    assert [len(shown[name].choices) for name in ("query_piece", "key_piece")] == [
        len(encoding)
    ] * 2


def test_who_looks_at_whom_where_nothing_is_chosen_and_how_far(session):
    model = "modernbert-tiny"
    found = ask(session, model=model)
    middle = len(found["columns"]) // 2
    assert (found["rotation"].query, found["rotation"].key) == (middle, middle - 1)
    assert dict(map(reversed, found["shown"]["query_piece"].choices))[-1].startswith(f"{middle} ")
    marks = mark(session, model)
    hidden = ask(session, model=model, marks=marks)["rotation"]
    assert (hidden.query, hidden.key) == (marks[0]["position"], marks[0]["position"] - 1)
    chosen = ask(session, model=model, marks=marks, query=3, key=6)
    assert (chosen["rotation"].query, chosen["rotation"].key) == (3, 6)
    for wrong in (99, "x", None, -3):
        odd = ask(session, model=model, query=wrong, key=wrong)
        assert odd["rotation"].query == middle
        assert odd["shown"]["key_piece"].value == -1
    assert ask(session, model=model, reach=160)["rotation"].distances[-1] == 160
    assert ask(session, model=model, query=0)["rotation"].key == 1
    for other in ("bert-mini", "deberta-tiny"):
        none = ask(session, model=other, query=1)["shown"]
        assert none["query_piece"].visible == none["key_piece"].visible == "hidden"
        assert [none[name] for name in ("turned", "turned_said", "turned_row", "waves")] == [
            None
        ] * 4


def test_the_code_gives_the_numbers_of_rotary_positions(session, capsys):
    marks = mark(session, "modernbert-tiny")
    answer = ask(session, model="modernbert-tiny", marks=marks, layer=1, query=2, key=4)
    space = {}
    exec(answer["shown"]["code"], space)
    assert "-64:" in capsys.readouterr().out
    assert space["turned"] == answer["rotation"]
