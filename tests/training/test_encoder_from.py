"""Models that begin with the encoder of another family."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import core_models as cm
from core_models.errors import InputError
from core_models.joint import new_generator
from core_models.network.trace import Trace
from core_models.training.folder import RunFolder
from core_models.training.models import build_model
from core_models.training.plan import plan_for
from core_models.training.prepare import prepare
from core_models.training.settings import parse, read
from core_models.training.shape import build_config
from core_models.training.warm import take_encoder

WORDS = cm.Tokenizer.train(["the red fox sees a small dog in the old house"] * 5, vocabulary=120)
SHAPE = {"layers": 2, "width": 32, "heads": 2, "inner": 64, "positions": 30}


LINES = ["See The red fox and the small cat, The fox reads the old house."] * 9
BYTES = cm.Tokenizer.train(LINES, kind="byte_bpe", vocabulary=340)


def made(
    toy: Callable[..., dict[str, Any]],
    size: str,
    seed: int = 1,
    words: cm.Tokenizer = WORDS,
    **model: Any,
) -> cm.Model:
    overrides = SHAPE | ({"embedding_width": 32} if size.startswith("electra") else {})
    overrides |= model.pop("over", {})
    values = toy(seed=seed, model={"size": size, "overrides": overrides} | model)
    values["data"]["singles"] = 0.0  # XLNet has none
    settings = parse(values)
    config = build_config(settings, words.vocabulary, words.pad_id)
    return build_model(settings, plan_for(settings, cm.size(size)), config, words, None)


@pytest.fixture
def known(toy: Callable[..., dict[str, Any]], tmp_path: Path) -> tuple[cm.Model, str]:
    model = made(toy, "bert-mini", seed=7)
    model.save(tmp_path / "known")
    return model, str(tmp_path / "known")


@pytest.mark.parametrize("size", ["electra-small-discriminator", "spanbert-base-cased"])
def test_the_encoder_is_taken_and_the_heads_are_fresh(
    toy: Callable[..., dict[str, Any]], known: tuple[cm.Model, str], size: str
) -> None:
    bert, folder = known
    fresh, warm = made(toy, size), made(toy, size, encoder_from=folder)
    own = warm.encoder.state_dict()
    for name, tensor in bert.encoder.state_dict().items():
        assert torch.equal(own[name], tensor), name
    assert warm.config.family == fresh.config.family != bert.config.family
    assert set(warm.heads) == set(fresh.heads)
    for name, tensor in fresh.heads.state_dict().items():
        if tensor.shape != (WORDS.vocabulary, 32):  # tied to the pieces
            assert torch.equal(tensor, warm.heads.state_dict()[name]), name
    batch = warm.batch(["the red fox sees"])
    same = bert.eval().encoder(batch).hidden
    assert torch.allclose(warm.eval().encoder(batch).hidden, same, atol=1e-6)


def test_another_vocabulary_takes_the_pieces_that_read_the_same(
    toy: Callable[..., dict[str, Any]], known: tuple[cm.Model, str]
) -> None:
    bert, folder = known
    fresh, warm = (
        made(toy, "roberta-base", words=BYTES, **more) for more in ({}, {"encoder_from": folder})
    )
    own, drawn, given = (model.encoder.embeddings.pieces.weight for model in (warm, fresh, bert))

    def of(model: cm.Model, word: str) -> int:
        (found,) = model.tokenizer.pieces_of(word)
        return found

    for word in ("fox", "the", "The"):
        assert torch.equal(own[of(warm, word)], given[of(bert, word.lower())]), word
    same = ("mask_id", "pad_id", "cls_id", "sep_id", "unknown_id")
    for name in same:
        there = getattr(WORDS, name)
        assert torch.equal(own[getattr(BYTES, name)], given[there]), name
    # "reads" is in no line of the other vocabulary.
    assert torch.equal(own[of(warm, "reads")], drawn[of(fresh, "reads")])
    places = warm.encoder.embeddings.positions.weight
    first = warm.config.embeddings.first_position
    assert first > bert.config.embeddings.first_position
    assert torch.equal(places[first:], bert.encoder.embeddings.positions.weight)
    assert torch.equal(places[:first], fresh.encoder.embeddings.positions.weight[:first])
    assert torch.equal(
        warm.encoder.embeddings.segments.weight, bert.encoder.embeddings.segments.weight[:1]
    )
    for name, tensor in bert.encoder.blocks.state_dict().items():
        assert torch.equal(warm.encoder.blocks.state_dict()[name], tensor), name


@pytest.mark.parametrize("size", ["albert-base", "electra-small-discriminator", "xlnet-base-cased"])
@pytest.mark.parametrize("source", ["modernbert-base", "neobert"])
def test_embeddings_without_a_norm_of_their_kind_are_refused_by_name(
    toy: Callable[..., dict[str, Any]], tmp_path: Path, size: str, source: str
) -> None:
    made(toy, source, over={"positions": None}).save(tmp_path / "odd")
    narrow = {"positions": None} if size.startswith("xlnet") else {"embedding_width": 16}
    with pytest.raises(InputError, match=r"model.encoder_from: the encoder of .* does not fit"):
        made(toy, size, over=narrow, encoder_from=str(tmp_path / "odd"))


@pytest.mark.parametrize(
    ("over", "named"),
    [
        ({"width": 64}, "[64"),
        ({"layers": 3}, "missing"),
        ({"positions": 40}, "positions.weight is [40, 32]"),
    ],
)
def test_other_shapes_are_refused_by_name(
    toy: Callable[..., dict[str, Any]],
    known: tuple[cm.Model, str],
    over: dict[str, int],
    named: str,
) -> None:
    with pytest.raises(
        InputError, match=r"model.encoder_from: the encoder of .* does not fit"
    ) as caught:
        made(toy, "bert-base-uncased", encoder_from=known[1], over=over)
    assert named in str(caught.value)


def test_a_deeper_discriminator_takes_the_layers_of_a_generator_again_and_again(
    toy: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    disc = made(toy, "deberta-v3-base", seed=7, over={"layers": 4})
    generator = new_generator(disc)
    assert generator.config.steps == 2
    generator.save(tmp_path / "generator")
    warm = made(
        toy, "deberta-v3-base", over={"layers": 4}, encoder_from=str(tmp_path / "generator")
    )
    given = generator.encoder.state_dict()
    for name, tensor in warm.encoder.state_dict().items():
        parts = name.split(".")
        if parts[0] == "blocks":
            parts[1] = str(int(parts[1]) % 2)
        assert torch.equal(tensor, given[".".join(parts)]), name
    with pytest.raises(InputError, match=r"does not fit.*missing"):
        made(toy, "deberta-v3-base", over={"layers": 3}, encoder_from=str(tmp_path / "generator"))


def test_one_shared_block_and_narrow_tables_begin_near_the_other_encoder(
    toy: Callable[..., dict[str, Any]], known: tuple[cm.Model, str]
) -> None:
    """Almost as many columns as the layers are wide hold almost everything."""
    bert, folder = known
    torch.nn.init.normal_(bert.encoder.embeddings.norm.weight, 1.0, 0.2)
    torch.nn.init.normal_(bert.encoder.embeddings.norm.bias, 0.0, 0.2)
    bert.save(folder)
    near = []
    for width in (8, 31):
        warm = made(toy, "albert-base", encoder_from=folder, over={"embedding_width": width})
        batch = warm.batch(["the red fox sees a dog"])
        found, wanted = (m.eval().encoder.embeddings(batch).detach() for m in (warm, bert))
        near.append(float(torch.cosine_similarity(found, wanted, dim=-1).mean()))
    assert near[0] < 0.98 < near[1]
    taken, given = warm.encoder.blocks.state_dict(), bert.encoder.blocks.state_dict()
    assert len(given) == 2 * len(taken)
    for name, tensor in taken.items():
        assert torch.equal(tensor, given[name.replace("0.", "1.", 1)]), name


def test_a_checkpoint_brings_its_own_encoder(toy: Callable[..., dict[str, Any]]) -> None:
    with pytest.raises(InputError, match="encoder_from or"):
        parse(toy(model={"checkpoint": "bert-mini", "encoder_from": "bert-mini"}))


def test_a_tokenizer_may_be_named_as_a_shipped_model(
    make_run: Callable[..., RunFolder],
) -> None:
    run = make_run(tokenizer={"folder": "bert-mini"})
    settings = read(run.config_path)
    prepared = prepare(run, settings, plan_for(settings, cm.size("bert-mini")))
    assert prepared.tokenizer.vocabulary == cm.load("bert-mini").tokenizer.vocabulary


@pytest.mark.parametrize(
    "size", ["deberta-base", "deberta-v2-xlarge", "deberta-v3-base", "xlnet-base-cased"]
)
def test_a_family_with_terms_begins_with_the_content_scores_of_plain_attention(
    toy: Callable[..., dict[str, Any]], known: tuple[cm.Model, str], size: str
) -> None:
    """The first layer's, on tokens that know no place, which BERT then does not know either."""
    bert, folder = known
    with torch.no_grad():
        for block in bert.encoder.blocks:
            for part in (block.attention.query, block.attention.key):
                torch.nn.init.normal_(part.bias, 0.0, 0.5)
        bert.encoder.embeddings.positions.weight.zero_()
        bert.encoder.embeddings.segments.weight.zero_()
    bert.save(folder)
    over = {"positions": None} if size.startswith("xlnet") else {}
    warm = made(toy, size, encoder_from=folder, over=over).eval()
    found, wanted = (_first_scores(model) for model in (warm, bert.eval()))
    # Softmax forgets what is added to a whole row, and that is all that the biases of keys do.
    assert torch.allclose(found - found[..., :1], wanted - wanted[..., :1], atol=1e-4)
    assert float((wanted - wanted[..., :1]).abs().max()) > 0.01
    with torch.no_grad():
        warm.encoder(warm.batch(["the red fox"]))  # every part has its shape


def _first_scores(model: cm.Model) -> Tensor:
    """Content scores [H, L, L] of the first layer between the pieces of a sentence."""
    batch = model.batch(["the red fox sees a small dog"])
    trace = Trace(["content_score"], steps=[0])
    with torch.no_grad():
        model.encoder(batch, trace=trace)
    special = (model.tokenizer.cls_id, model.tokenizer.sep_id)
    inside = [n for n, i in enumerate(batch.input_ids[0].tolist()) if i not in special]
    return trace["content_score", 0][0][:, inside][:, :, inside]


def test_a_shallower_generator_takes_the_last_of_every_two_layers(
    toy: Callable[..., dict[str, Any]], known: tuple[cm.Model, str]
) -> None:
    bert, folder = known
    disc = made(toy, "deberta-v3-base", encoder_from=folder)
    generator = new_generator(disc)
    assert (generator.config.steps, disc.config.steps) == (1, 2)
    take_encoder(generator, folder)
    for name, tensor in bert.encoder.blocks[1].state_dict().items():
        factor = 3**0.5 if name.startswith("attention.query") else 1.0
        assert torch.equal(generator.encoder.blocks[0].state_dict()[name], tensor * factor), name
    pieces = bert.encoder.embeddings.pieces.weight
    assert torch.equal(generator.encoder.embeddings.pieces.weight, pieces)


def test_a_pair_begins_with_a_model_of_masked_tokens_without_its_convolution(
    toy: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    """DeBERTa v3 that begins with v2: relative positions cross too; the generator keeps v2's
    mask decoder."""
    known = made(toy, "deberta-v2-xlarge", seed=7)
    known.save(tmp_path / "v2")
    settings = {"encoder_from": str(tmp_path / "v2")}
    disc = made(toy, "deberta-v3-base", **settings)
    given = known.encoder.state_dict()
    decoder = {name for name in given if name.startswith("mask_decoder.")}
    convolution = {name for name in given if name.startswith("convolution.")}
    own = disc.encoder.state_dict()
    assert decoder
    assert convolution
    assert "table.relative.weight" in own
    assert set(own) == set(given) - decoder - convolution
    for name, tensor in own.items():
        assert torch.equal(tensor, given[name]), name
    generator = new_generator(disc)
    take_encoder(generator, settings["encoder_from"])
    own = generator.encoder.state_dict()
    places = "mask_decoder.weight"  # the published generator's has a row for each of 512
    assert decoder == {places}
    assert len(own[places]) > len(given[places]) == SHAPE["positions"]
    assert torch.equal(own[places][: SHAPE["positions"]], given[places])
    for name, tensor in known.encoder.blocks[1].state_dict().items():
        assert torch.equal(generator.encoder.blocks[0].state_dict()[name], tensor), name


def test_a_convolution_that_the_other_lacks_stays_as_drawn(
    toy: Callable[..., dict[str, Any]], known: tuple[cm.Model, str]
) -> None:
    fresh, warm = (
        made(toy, "deberta-v2-xlarge", **more) for more in ({}, {"encoder_from": known[1]})
    )
    kept = fresh.encoder.convolution
    assert kept is not None
    assert warm.encoder.convolution is not None
    for name, tensor in kept.state_dict().items():
        assert torch.equal(warm.encoder.convolution.state_dict()[name], tensor), name
