"""How an exported model is opened, and what transformers has no class for: a part of its card."""

from collections.abc import Collection, Mapping
from typing import Any

from core_models.checkpoints.formats import FORMATS

_AUTO = {
    "ForSequenceClassification": "AutoModelForSequenceClassification",
    "ForTokenClassification": "AutoModelForTokenClassification",
    "ForQuestionAnswering": "AutoModelForQuestionAnswering",
    "ForQuestionAnsweringSimple": "AutoModelForQuestionAnswering",
    "ForNextSentencePrediction": "AutoModelForNextSentencePrediction",
    "ForPreTraining": "AutoModelForPreTraining",
    "ForMaskedLM": "AutoModelForMaskedLM",
    "LMHeadModel": "AutoModelForCausalLM",
}


def auto_class(config: Mapping[str, Any]) -> str:
    """The class of transformers that opens a config.json."""
    named = str((config.get("architectures") or [""])[0])
    fitting = [ending for ending in _AUTO if named.endswith(ending)]
    return _AUTO[max(fitting, key=len)] if fitting else "AutoModel"


def opening(
    config: Mapping[str, Any], top: str, *, generator: bool, beside: Collection[str]
) -> list[str]:
    """Lines of the card: the code that opens a folder, and what has to be known.

    Args:
        config: its config.json.
        top: its name in the zip.
        generator: whether it is the model that filled masks for the other one.
        beside: kinds of all the folders in the zip.
    """
    auto = auto_class(config)
    theirs = [
        "With transformers, from the folder that holds this one:",
        "",
        "```python",
        f"from transformers import {auto}, AutoTokenizer",
        "",
        f'tokenizer = AutoTokenizer.from_pretrained("./{top}")',
        f'model = {auto}.from_pretrained("./{top}")',
        "```",
    ]
    kind = FORMATS.get(str(config.get("model_type")))
    if kind is not None and not kind.in_transformers:
        theirs = [
            "transformers has no class for it; the Python files of its authors open the folder, "
            "which has their names of tensors and fields.",
        ]
    lines = [
        *theirs,
        "",
        "With Cloze, in Python or as a model of the page (`CLOZE_MODELS` names the folder that "
        "holds this one):",
        "",
        "```python",
        "import core_models as cm",
        "",
        f'model = cm.load("./{top}")',
        "```",
    ]
    if len(beside) > 1 and not generator:
        lines += [
            "",
            "The folder `generator` holds the model that filled the masks. As long as it lies "
            "beside this one, a run that begins with this model goes on with it.",
        ]
    notes = _notes(config)
    return (
        [*lines, "", "What transformers cannot open or does otherwise:", "", *notes]
        if (notes)
        else lines
    )


def scores(task: Mapping[str, Any], config: Mapping[str, Any]) -> list[str]:
    """Lines of the card: how the scores of a set are had back from what the model answers.

    Args:
        task: facts about the labelled set, of the run's status; nothing is said but of scores.
        config: its config.json.
    """
    scale = task.get("scale")
    if task.get("kind") != "regress" or not isinstance(scale, list | tuple) or len(scale) != 2:
        return []
    low, high = (f"{float(value):.10g}" for value in scale)
    apart = (config.get("cloze_task") or {}).get("head") == "similarity"
    answer = "cosine of the two vectors" if apart else "model's answer"
    below = f"({low})" if low.startswith("-") else low
    return [
        "",
        f"The {answer} is no score yet: it was trained to be 0 for the lowest score of its set "
        f"({low}) and 1 for the highest ({high}). The *Try it* box of Cloze shows scores; "
        "elsewhere they are had back by",
        "",
        "```python",
        f"score = {low} + answer * ({high} - {below})",
        "```",
        "",
        "Nothing keeps an answer within 0 and 1, so a score may lie a little outside of the scale.",
    ]


def _notes(config: Mapping[str, Any]) -> list[str]:
    """Where transformers has no class for a part, or computes something else with it."""
    kind = str(config.get("model_type"))
    family, auto = str(config.get("cloze_family") or kind), auto_class(config)
    task = config.get("cloze_task") or {}
    notes = []
    if config.get("cloze_mask_decoder_steps") and auto == "AutoModelForMaskedLM":
        notes.append(
            "- It answers through DeBERTa's mask decoder, which transformers leaves out: weights "
            "load completely, but hidden pieces are predicted from the last layer there, so "
            "predictions differ. Its encoder gives the same states."
        )
    objectives = config.get("cloze_objectives") or ["span_boundary"]
    if family == "spanbert" and auto == "AutoModelForMaskedLM" and "span_boundary" in objectives:
        notes.append(
            "- The span-boundary head (`cls.pair_target_predictions.*`) has no class; transformers "
            "names its tensors as unexpected and leaves them out."
        )
    if kind == "xlnet" and auto == "AutoModelForCausalLM":
        notes.append(
            "- It was trained on orders of prediction: transformers' class asks for `perm_mask` "
            "and `target_mapping`. Without them every piece sees itself, so that the scores are "
            "no predictions. The memory of earlier segments is theirs to keep (`mems`)."
        )
    if kind != "xlnet" and auto == "AutoModelForCausalLM" and not config.get("is_decoder"):
        notes.append(
            "- Its class is that of models that read from left to right, but it sees both sides: a "
            "[MASK] is told at the position before it. transformers advises `is_decoder=True`, "
            "which would hide from it what follows; `generate` is not what most of its training "
            "was."
        )
    if family == "deberta_v3" and auto == "AutoModel" and not task:
        notes.append(
            "- Its head that tells replaced pieces (`mask_predictions.*`) has no class; "
            "transformers opens the encoder and names these tensors as unexpected."
        )
    if family == "macbert" and auto == "AutoModelForPreTraining":
        notes.append(
            "- The second head tells the order of two sentences; transformers' class calls it next "
            "sentence (`seq_relationship`)."
        )
    if task.get("head") == "similarity":
        notes.append(
            "- Similarity is the cosine of two texts' vectors "
            f"({'means over all pieces' if task.get('pooling') == 'mean' else 'one token each'}); "
            "transformers opens the encoder, the cosine is yours to take."
        )
    if task.get("head") == "tag" and task.get("every_step"):
        notes.append(
            "- The tags are read from a mix of all layers, for which transformers has no class: "
            "it opens the encoder and names `cloze_tag.*` as unexpected."
        )
    return notes
