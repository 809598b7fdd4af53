"""What the settings come to for each family, and which values are refused together."""

from typing import Any

import pytest

import core_models as cm
from core_models import families
from core_models.config import Disentangled
from core_models.errors import InputError
from core_models.training import settings
from core_models.training.models import model_config
from core_models.training.plan import Plan, plan_for
from core_models.training.shape import build_config


def parsed(size: str, **changes: Any) -> settings.Settings:
    data = {"texts": ["a.txt"]} | changes.pop("data", {})
    return settings.parse({"model": {"size": size}, "data": data, "steps": 10} | changes)


def plan(size: str, **changes: Any) -> Plan:
    return plan_for(parsed(size, **changes), cm.size(size))


# objectives, format, masking, tokenizer, lower case, template
FAMILIES = {
    "bert-base": "masked_token+next_sentence next_sentence uniform wordpiece 1 enclosing",
    "roberta-base": "masked_token full_sentences uniform byte_bpe 0 doubled",
    "albert-base": "masked_token+sentence_order sentence_order ngram unigram 1 enclosing",
    "spanbert-base": "masked_token+span_boundary single span wordpiece 0 enclosing",
    "xlnet-base": "permutation recurrent ordering unigram 0 trailing",
    "electra-base": "replaced_token full_sentences any wordpiece 1 enclosing",
    "deberta-base": "masked_token full_sentences any byte_bpe 0 enclosing",
    "deberta-v3-base": "replaced_token full_sentences any unigram 0 enclosing",
    "macbert-base": "masked_token+sentence_order sentence_order similar_word wordpiece 1 enclosing",
}


@pytest.mark.parametrize("size", FAMILIES)
def test_open_values_follow_the_family(size: str) -> None:
    objectives, form, masking, tokenizer, lowercase, template = FAMILIES[size].split()
    found = plan(size)
    assert found.objectives == dict.fromkeys(objectives.split("+"), 1.0)
    assert found.format == form
    assert masking in ("any", found.masking.kind)
    assert (found.tokenizer, found.template) == (tokenizer, template)
    assert found.lowercase == bool(int(lowercase))


def test_what_is_given_wins() -> None:
    found = plan(
        "albert-base",
        objectives={"masked_token": 2.0},
        masking={"kind": "whole_word", "rate": 0.3, "dynamic": True},
        data={"format": "doc_sentences"},
        tokenizer={"kind": "wordpiece", "lowercase": False},
    )
    assert found.objectives == {"masked_token": 2.0}
    assert (found.format, found.tokenizer, found.lowercase) == ("doc_sentences", "wordpiece", False)
    masking = found.masking
    assert (masking.kind, masking.rate, masking.dynamic) == ("whole_word", 0.3, True)
    assert masking.longest == 1, "not the three words of ALBERT's own n-grams"
    assert masking.split == (0.8, 0.1, 0.1)


def test_diffusion_hides_shares_of_its_own_and_gpt_berts_sixteenth_is_read_leftward() -> None:
    found = plan("roberta-base", objectives={"masked_diffusion": 1})
    assert (found.masking.kind, found.masking.split) == ("diffusion", (1.0, 0.0, 0.0))
    assert (found.masking.rate, found.masking.leftward) == (0.5, None)
    paired = plan("bert-mini", objectives={"masked_diffusion": 1, "next_sentence": 0.5})
    assert paired.format == "next_sentence"
    assert plan("bert-mini", objectives={"masked_next_token": 1}).masking.leftward == 1 / 16


def test_xlnets_memory_and_v3s_sharing() -> None:
    found = plan("xlnet-base", data={"max_length": 64})
    assert (found.reuse, found.memory, found.both_directions) == (32, 48, True)
    assert plan("xlnet-base", data={"memory": 0}).memory == 0
    assert plan("deberta-v3-base").sharing == "gradient_disentangled"
    assert plan("electra-base").sharing == "tied"


@pytest.mark.parametrize(
    ("size", "changes", "message"),
    [
        ("bert-mini", {"data": {"format": "full_sentences"}}, "next_sentence needs data.format"),
        ("albert-base", {"data": {"format": "next_sentence"}}, "sentence_order needs data.format"),
        ("bert-mini", {"objectives": {"permutation": 1}}, "needs a family with a query stream"),
        ("xlnet-base", {"objectives": {"masked_token": 1}}, "use permutation, not masked_token"),
        ("xlnet-base", {"masking": {"kind": "span"}}, "permutation and ordering belong together"),
        ("bert-mini", {"masking": {"kind": "ordering"}}, "permutation and ordering belong"),
        (
            "spanbert-base",
            {"masking": {"kind": "uniform"}},
            "span_boundary needs masking.kind span",
        ),
        ("deberta-base", {"objectives": {"causal": 1}}, "causal needs plain attention"),
        (
            "bert-mini",
            {"objectives": {"causal": 1, "masked_token": 1}},
            "causal cannot be combined",
        ),
        (
            "electra-base",
            {"objectives": {"replaced_token": 1, "masked_token": 1}},
            "its generator learns masked tokens itself",
        ),
        ("bert-mini", {"generator": {"layers": 1}}, "only the objective replaced_token has one"),
        ("bert-mini", {"objectives": {"distillation": 1}}, "needs distillation.teacher"),
        ("bert-mini", {"distillation": {"teacher": "x"}}, "give it a weight in objectives"),
        (
            "electra-base",
            {"masking": {"kind": "with_replacement", "split": [0.8, 0.1, 0.1]}},
            "second share must be 0",
        ),
        ("albert-base", {"masking": {"counting": "fairseq"}}, "uniform and whole_word only"),
        (
            "bert-mini",
            {"objectives": {"causal": 1}, "masking": {"kind": "uniform"}},
            "hides no tokens",
        ),
        ("bert-mini", {"masking": {"kind": "diffusion"}}, "masked_diffusion and diffusion belong"),
        (
            "bert-mini",
            {"objectives": {"masked_diffusion": 1}, "masking": {"rate": 0.3}},
            "a share between 0 and 1",
        ),
        (
            "bert-mini",
            {"objectives": {"masked_diffusion": 1, "masked_token": 1}},
            "it hides another share of each example",
        ),
        ("bert-mini", {"masking": {"leftward": 0.5}}, "only the objective masked_next_token"),
        ("deberta-base", {"objectives": {"masked_next_token": 1}}, "answers in a mask decoder"),
        (
            "bert-mini",
            {"objectives": {"masked_next_token": 1}, "masking": {"kind": "with_replacement"}},
            "counts each hidden piece once",
        ),
        ("bert-mini", {"data": {"memory": 8}}, "belong to format recurrent, not next_sentence"),
        ("xlnet-base", {"data": {"singles": 0.5}}, "never single"),
        ("xlnet-base", {"data": {"first_length": 64}}, "segments have one length"),
        ("xlnet-base", {"data": {"first_batch": 64}}, "segments keep their rows"),
        ("xlnet-base", {"data": {"reuse": 126}}, "leaves no room"),
        ("xlnet-base", {"batch_size": 3}, "must be even"),
        ("xlnet-base", {"masking": {"ordering": "paper"}}, "take released"),
        ("bert-mini", {"data": {"singles": 1.0}}, "data.singles must be below 1"),
        (
            "xlnet-base",
            {"model": {"size": "xlnet-base", "overrides": {"positions": 128}}},
            "has no table of positions",
        ),
    ],
)
def test_what_does_not_go_together(size: str, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        parsed(size, **changes)
    assert message in str(error.value)


def config(size: str, max_length: int = 128, **overrides: Any) -> cm.Config:
    model = {"size": size, "overrides": overrides}
    return build_config(parsed(size, model=model, data={"max_length": max_length}), 1000, 0)


def test_a_smaller_size_keeps_the_familys_proportions() -> None:
    albert = config("albert-base", layers=4, width=256)
    assert albert.schedule == (0, 0, 0, 0)
    assert (albert.embeddings.width, albert.attention.heads) == (128, 4)
    assert (albert.attention.head_width, albert.feed_forward.width) == (64, 1024)
    assert config("albert-base", embedding_width=32).embeddings.width == 32
    assert config("bert-base", width=256).embeddings.width == 256
    assert config("bert-base", width=64, heads=4).attention.head_width == 16
    assert config("bert-base", layers=3).schedule == (0, 1, 2)


def test_positions_reach_as_far_as_the_input() -> None:
    roberta = config("roberta-base", positions=128).embeddings
    # Padding is piece 0 here, so the first token takes row 1 and the table has one more.
    assert (roberta.pad_id, roberta.first_position, roberta.positions) == (0, 1, 129)
    assert config("roberta-base").embeddings.positions == 513
    assert config("xlnet-base").embeddings.positions is None
    for length, given, expected in ((128, None, 128), (128, 256, 256), (512, None, 512)):
        overrides = {} if given is None else {"positions": given}
        found = config("deberta-v2-xlarge", length, **overrides)
        terms = found.attention.terms
        assert isinstance(terms, Disentangled)
        assert (terms.span, terms.buckets) == (expected, expected // 2)
        assert found.mask_decoder is not None
        assert found.mask_decoder.positions == expected
    assert config("bert-base").embeddings.positions == 512, "a table of its own stays"
    farther = config("deberta-base", 600, positions=1024)
    assert farther.mask_decoder is not None
    assert (farther.attention.terms.span, farther.mask_decoder.positions) == (1024, 1024)


def test_causal_reads_from_left_to_right() -> None:
    values = parsed("bert-mini", objectives={"causal": 1})
    assert build_config(values, 1000, 0).attention.direction == "left"
    assert config("bert-mini").attention.direction == "both"


FIRST = {name: next(iter(family.sizes)) for name, family in families.FAMILIES.items()}


def shaped(name: str, table: int | None) -> cm.Config:
    """The config of a model of width 64 to train, which is refused where no file could hold it."""
    overrides = {"layers": 2, "width": 64, "heads": 2, "embedding_width": table}
    given = parsed(name, model={"size": name, "overrides": overrides})
    return model_config(given, plan_for(given, cm.size(name)), None, vocabulary=1000, pad_id=0)


@pytest.mark.parametrize("family", FIRST)
def test_tables_as_wide_as_the_layers_fit_into_every_file(family: str) -> None:
    assert shaped(FIRST[family], 64).embeddings.width == 64


@pytest.mark.parametrize("family", FIRST)
def test_tables_of_another_width_are_refused_by_name_where_files_have_no_projection(
    family: str,
) -> None:
    if family in ("albert", "electra", "deberta", "deberta_v2", "deberta_v3"):
        assert shaped(FIRST[family], 32).projected
    else:
        with pytest.raises(InputError, match=r"embeddings\.width is 32|embedding_width"):
            shaped(FIRST[family], 32)
