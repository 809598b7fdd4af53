"""Terms of scores: against the trace, against hand-made sums, against models without a term."""

import math

import pytest
import torch

import core_models as cm
from core_models import InputError
from core_models.config import Disentangled
from core_models.network.terms.buckets import edges, exact_reach, rows_of
from core_models.network.terms.disentangled import DisentangledTable
from core_models.prediction import terms_view
from core_models.prediction.passes import hidden_at, seen_with
from tests.core.tiny_models import new, tiny, tokenizer

TEXT = "red fox sees small dog likes old house"
SIZES = ("deberta-base", "deberta-v2-xlarge", "deberta-v3-base-generator", "xlnet-base-cased")
GAP = 3


def built(size: str) -> tuple[cm.Model, "terms_view.Encoding"]:
    model = new(tiny(size)).eval()
    (encoding,) = model.encode([TEXT])
    return model, seen_with(encoding, {GAP: model.tokenizer.mask_id})


@pytest.mark.parametrize("size", [*SIZES, "bert-base-uncased"])
def test_terms_add_up_to_the_score_of_the_trace_exactly_in_every_stream(size):
    model, seen = built(size)
    for stream in terms_view.streams(model, [GAP]):
        found = terms_view.look(model, seen, [GAP], step=1, head=1, stream=stream).view
        assert found.residue() == 0.0
        assert found.names == terms_view.term_names(model.config)[: len(found.names)]
        assert found.terms.shape == (len(found.names), len(found.rows), len(seen))
        softmax = found.scores.masked_fill(~found.visible, -math.inf).softmax(-1)
        assert torch.allclose(softmax, found.probabilities, atol=1e-6)


def test_a_wrong_sum_is_noticed():
    model, seen = built("deberta-base")
    view = terms_view.look(model, seen).view
    view.terms[1, 2, 3] += 0.5
    assert view.residue() == pytest.approx(0.5, abs=1e-5)


def test_content_is_the_scaled_product_of_queries_and_keys():
    model, seen = built("deberta-v2-xlarge")
    found = terms_view.look(model, seen, step=1, head=1)
    width = model.config.attention.head_width
    product = found.queries @ found.keys.T / math.sqrt(3 * width)
    assert torch.allclose(product, found.view.terms[0], atol=1e-6)


@pytest.mark.parametrize("step", [0, 1])
@pytest.mark.parametrize("size", ["deberta-base", "deberta-v2-xlarge", "deberta-v3-base"])
def test_curves_hold_what_the_trace_gives_to_pairs(size, step):
    model, seen = built(size)
    found = terms_view.look(model, seen, step=step, head=1)
    length = len(seen)
    # One query alone: its mean is its own row of the term.
    for place in (0, 4, length - 1):
        single = terms_view.Pass(
            found.view, found.queries[place : place + 1], found.keys[place : place + 1], None, None
        )
        curves = terms_view.bias_curves(
            model, single, [place - key for key in range(length)], step=step, head=1
        )
        assert curves["c2p"] == pytest.approx(found.view.terms[1, place].tolist(), abs=1e-5)
        curves = terms_view.bias_curves(
            model, single, [query - place for query in range(length)], step=step, head=1
        )
        assert curves["p2c"] == pytest.approx(found.view.terms[2, :, place].tolist(), abs=1e-5)
    with pytest.raises(InputError, match="table of distances"):
        terms_view.bias_curves(built("xlnet-base-cased")[0], found, [0], step=0, head=0)


def test_means_by_distance_by_hand():
    terms = torch.tensor([[[1.0, 2.0], [3.0, 4.0]], [[10.0, 20.0], [30.0, 40.0]]])
    visible = torch.tensor([[True, True], [True, False]])
    view = terms_view.TermView(("content", "c2p"), (0, 1), terms, terms[0], visible, terms[0])
    found = terms_view.by_distance(view)
    assert [(f.distance, f.pairs, f.means) for f in found] == [
        (-1, 1, (2.0, 20.0)),
        (0, 1, (1.0, 10.0)),
        (1, 1, (3.0, 30.0)),
    ]


@pytest.mark.parametrize("size", SIZES)
def test_a_term_switched_off_is_zero_where_it_was_asked_and_nowhere_else(size):
    model, seen = built(size)
    name = terms_view.term_names(model.config)[1]
    for scope, zeros in {
        "head": {(1, 1)},
        "layer": {(1, 0), (1, 1)},
        "model": {(0, 0), (0, 1), (1, 0), (1, 1)},
    }.items():
        edits = terms_view.switched_off(model.config, [name], scope, step=1, head=1)
        for step, head in ((0, 0), (0, 1), (1, 0), (1, 1)):
            view = terms_view.look(model, seen, [GAP], step=step, head=head, edits=edits).view
            off = not view.terms[view.names.index(name)].any()
            assert off == ((step, head) in zeros), (scope, step, head)
            assert view.residue() == 0.0


def test_the_prediction_without_terms_is_that_of_a_model_with_empty_tables():
    model, seen = built("deberta-v2-xlarge")
    edits = terms_view.switched_off(model.config, ["c2p", "p2c"], "model")
    off = terms_view.look(model, seen, [GAP], edits=edits)
    usual = terms_view.look(model, seen, [GAP])
    attention = [block.attention for block in model.encoder.blocks]
    with torch.no_grad():  # shared projections: a zero row still gives their biases
        model.encoder.table.norm.weight.zero_()
        model.encoder.table.norm.bias.zero_()
        for part in attention:
            part.query.bias.zero_()
            part.key.bias.zero_()
    without_biases = terms_view.look(model, seen, [GAP])
    with_edits = terms_view.look(model, seen, [GAP], edits=edits)
    assert torch.allclose(without_biases.answers, with_edits.answers, atol=1e-6)
    assert not torch.allclose(off.answers, usual.answers, atol=1e-3)


@pytest.mark.parametrize("size", ["deberta-base", "deberta-v3-base-generator"])
def test_switches_of_the_last_layer_reach_the_mask_decoder(size):
    model, seen = built(size)

    def answers(step: int, scope: str) -> torch.Tensor:
        edits = terms_view.switched_off(model.config, ["c2p"], scope, step=step, head=0)
        found = terms_view.look(model, seen, [GAP], edits=edits).answers
        assert found is not None
        return found

    usual = terms_view.look(model, seen, [GAP]).answers
    for step, scope in ((1, "head"), (1, "layer"), (0, "layer"), (0, "model")):
        assert not torch.allclose(answers(step, scope), usual, atol=1e-4)
    edits = terms_view.switched_off(model.config, ["c2p"], "layer", step=0)
    decoder = terms_view.look(model, seen, [GAP], stream="mask_decoder", edits=edits).view
    assert decoder.terms[1].any()


def test_decoder_variants_are_the_models_own_and_two_others():
    model, seen = built("deberta-base")
    found = terms_view.decoder_variants(model, seen, GAP)
    hidden = hidden_at(model, [seen], [(0, GAP)])
    own = terms_view.distribution(model, hidden)[0]
    assert torch.allclose(found["decoder"], own, atol=1e-6)
    assert torch.allclose(found["decoder"].exp().sum(), torch.tensor(1.0), atol=1e-5)
    assert not torch.allclose(found["decoder"], found["no_positions"], atol=1e-3)
    assert not torch.allclose(found["decoder"], found["no_decoder"], atol=1e-3)
    with torch.no_grad():
        model.encoder.mask_decoder.weight.zero_()
    bare = terms_view.decoder_variants(model, seen, GAP)
    assert torch.allclose(bare["decoder"], found["no_positions"], atol=1e-6)
    with pytest.raises(InputError, match="no mask decoder"):
        terms_view.decoder_variants(*built("bert-base-uncased"), GAP)


def test_rows_are_those_of_the_encoders_table():
    for size in ("deberta-base", "deberta-v3-base", "deberta-v2-xxlarge"):
        config = cm.size(size)
        terms = config.attention.terms
        table = DisentangledTable(tiny(size), terms)
        distances = torch.arange(-1500, 1501)
        assert torch.equal(rows_of(terms, distances), table.index(distances))
        assert int(rows_of(terms, distances).min()) == 0


def test_edges_and_reach_by_hand():
    clipped = Disentangled(span=4)  # rows 0..7 for -4..3; 3, 4, 5... share the last
    assert rows_of(clipped, torch.arange(-6, 7)).tolist() == [0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 7, 7, 7]
    assert edges(clipped, 6) == [-3, 3]
    assert edges(clipped, 2) == []
    assert exact_reach(clipped) == (-3, 2)
    buckets = Disentangled(span=16, buckets=8)  # m = 4: exact to 4, then ceil(log(r/4)/log(15/4)*3)
    rows = rows_of(buckets, torch.arange(0, 17)).tolist()
    by_hand = [
        8 + (r if r <= 4 else 4 + math.ceil(math.log(r / 4) / math.log(15 / 4) * 3))
        for r in range(17)
    ]
    assert rows == [min(row, 15) for row in by_hand]
    assert edges(buckets, 16) == [-15, -9, -6, -4, 5, 7, 10]


def test_errors_name_what_there_is():
    model, seen = built("deberta-base")
    with pytest.raises(InputError, match="this model has 0 to 1"):
        terms_view.look(model, seen, step=2)
    with pytest.raises(InputError, match="The layer is -1; this model has 0 to 1"):
        terms_view.look(model, seen, step=-1)
    with pytest.raises(InputError, match="The head is -1; this model has 0 to 1"):
        terms_view.look(model, seen, head=-1)
    with pytest.raises(InputError, match="There is no stream 'query'"):
        terms_view.look(model, seen, stream="query")
    with pytest.raises(InputError, match="its terms are content, c2p, p2c"):
        terms_view.switched_off(model.config, ["segment"], "model")
    with pytest.raises(InputError, match="scope"):
        terms_view.switched_off(model.config, ["c2p"], "all")
    for head in (2, -1):
        with pytest.raises(InputError, match=f"There is no head {head} in layer 1"):
            terms_view.switched_off(model.config, ["c2p"], "head", step=1, head=head)


def test_queries_are_a_stream_only_where_there_are_gaps():
    model, _ = built("xlnet-base-cased")
    assert terms_view.streams(model, ()) == ("content",)
    assert terms_view.streams(model, [GAP]) == ("content", "query")


def test_rows_without_a_piece_are_left_out():
    pieces = tokenizer().vocabulary
    model = new(tiny("bert-mini").with_vocabulary(pieces + 5, pad_id=0)).eval()
    states = torch.randn(2, 8, generator=torch.Generator().manual_seed(1))
    logs = model.heads["masked_token"](states).log_softmax(-1)
    found = terms_view.distribution(model, states)
    assert torch.equal(found, logs[:, :pieces])  # they keep their share
