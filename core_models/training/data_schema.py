"""What a pretraining reads: the vocabulary, documents that become examples, and what is hidden.

Parts of :class:`core_models.training.schema.Settings`.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from core_models.training.run_schema import Part, Share, labelled

# Written out once more, so that settings are read without PyTorch; a test holds them together.
FormatName = Literal[
    "next_sentence",
    "sentence_order",
    "sentence_pair",
    "full_sentences",
    "doc_sentences",
    "single",
    "recurrent",
]
MaskingKind = Literal[
    "uniform",
    "whole_word",
    "ngram",
    "windowed_ngram",
    "span",
    "with_replacement",
    "similar_word",
    "ordering",
    "diffusion",
]
FORMATS = {
    "next_sentence": "pairs of segments, half of them neighbours",
    "sentence_order": "two segments, half of them swapped",
    "sentence_pair": "pairs of sentences",
    "full_sentences": "full sentences up to the longest length",
    "doc_sentences": "full sentences of one document",
    "single": "single segments",
    "recurrent": "a stream that goes on from batch to batch",
}
MASKINGS = {
    "uniform": "single pieces",
    "whole_word": "whole words",
    "ngram": "runs of words",
    "windowed_ngram": "runs of words in windows",
    "span": "spans",
    "with_replacement": "single pieces, drawn with replacement",
    "similar_word": "words, replaced by similar ones",
    "ordering": "an order of prediction",
    "diffusion": "another share of each example",
}


class TokenizerSettings(Part):
    """A vocabulary learned from the training documents, or one that exists."""

    kind: Annotated[Literal["wordpiece", "byte_bpe", "unigram"] | None, labelled("Algorithm")] = (
        None
    )
    """The algorithm that learns the vocabulary; empty = the family's."""
    vocabulary: Annotated[int, Field(ge=64, le=250_000), labelled("Vocabulary", first=True)] = 6000
    """Most pieces to learn, special pieces included."""
    lowercase: Annotated[bool | None, labelled("Lower case")] = None
    """Whether text is lower-cased (and accents removed) before it is cut; empty = as the family's
    released vocabularies. A byte_bpe vocabulary keeps the text as it is."""
    folder: str | None = None
    """Folder of an existing tokenizer; the three values above are then not used."""


class DataSettings(Part):
    """Documents and how they become examples."""

    texts: Annotated[list[str], labelled("What it reads", first=True)] = Field(default=[])
    """Files or patterns (.txt, .csv, .tsv, .jsonl, .parquet), looked up beside config.json, then in
    the project's assets."""
    dataset: str | None = None
    """Name of a `datasets` data set, instead of ``texts``; needs network."""
    configuration: str | None = None
    """Its configuration, where it has several."""
    split: str = "train"
    """Its split."""
    column: str | None = None
    """Column with the text, where there are columns; null = "text", or the only one."""
    paragraphs: bool | None = None
    """Whether a line, or a cell, is a paragraph that is split into sentences here; null = cells
    are, lines of .txt are sentences."""
    held_out: Annotated[float, Field(ge=0.0, le=0.5), labelled("Held out")] = 0.05
    """Share of the documents kept for validation; those that say the same stay together. The same
    texts and seed keep the same ones out, so also in a second phase."""
    training_only: Annotated[list[str], labelled("Read, and nothing of it held out")] = Field(
        default=[]
    )
    """More text files or patterns, of which nothing is held out."""
    held_out_texts: list[str] = Field(default=[])
    """More text files or patterns, of which everything is held out."""
    chinese_words: Annotated[bool, labelled("Chinese words")] = False
    """Whether characters of one Chinese word belong together when whole words, n-grams or spans are
    hidden; needs the library jieba. false = every character is a word."""
    format: Annotated[FormatName | None, labelled("Examples", names=FORMATS)] = None
    """How documents become examples; empty = as the objectives need it, else full_sentences."""
    max_length: Annotated[int, Field(ge=8, le=4096), labelled("Longest example", first=True)] = 128
    """Longest example in tokens, [CLS] and [SEP] included."""
    first_length: Annotated[int, Field(ge=8, le=4096)] | None = None
    """Longest example of the first steps, whose batches hold as many more examples, so that an
    update reads as many tokens (BERT, arXiv 1810.04805, appendix A.2: 128, then 512). null = as
    ``max_length``. Not for recurrent."""
    first_batch: Annotated[int, Field(ge=1, le=65_536)] | None = None
    """Examples of the first updates, so that a batch can grow late in a run (arXiv 1711.00489).
    null = as ``first_length`` says, else ``batch_size``. Not for recurrent."""
    first_share: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.9
    """Share of the steps that are first ones (BERT's shorter ones: 0.9)."""
    short_probability: Share = 0.1
    """Share of documents cut into pairs of a random shorter length (BERT: 0.1)."""
    random_for_lone: bool = False
    """sentence_order only: whether a lone sentence is paired with another document's text, called
    swapped, as in ALBERT's released code; false = left out, as topic gives such pairs away."""
    order_sentences: Annotated[int, Field(ge=1, le=100)] | None = None
    """sentence_order only: both parts of a pair have the same number of sentences, from 1 to this,
    so that their lengths do not tell the order; null = chunks that fill the length (ALBERT)."""
    duplicates: Annotated[int, Field(ge=1, le=1000)] = 10
    """How many times the documents are cut into examples, where the cuts are drawn (BERT: 10)."""
    singles: Share = 0.0
    """Share of documents cut into single segments of a few sentences, without pair label."""
    bucketing: Annotated[int, Field(ge=1, le=1000)] = 16
    """Batches whose examples are sorted by length together, to save padding; 1 = no sorting."""
    even: bool = False
    """Whether batches are cut by tokens and batch_size is the mean: an update is then as sure with
    short examples as with long ones; false = batch_size examples each. Not for recurrent."""
    reuse: Annotated[int, Field(ge=0, le=4096)] | None = None
    """recurrent only: tokens of a segment that come from the stream, and may be remembered; the
    others belong to the second text. null = half of max_length."""
    memory: Annotated[int, Field(ge=0, le=4096)] | None = None
    """recurrent only: tokens of earlier segments that the model sees; 0 = none. null = three
    quarters of max_length (XLNet)."""

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if bool(self.texts) == (self.dataset is not None):
            raise ValueError("give either data.texts or data.dataset, not both and not neither")
        return self

    @model_validator(mode="after")
    def _first_is_shorter(self) -> Self:
        if self.first_length is not None and self.first_length >= self.max_length:
            raise ValueError(
                f"data.first_length ({self.first_length}) must be below data.max_length "
                f"({self.max_length})"
            )
        return self


class MaskingSettings(Part):
    """How tokens are chosen for prediction."""

    kind: Annotated[MaskingKind | None, labelled("Chosen are", names=MASKINGS)] = None
    """Single pieces, whole words, n-grams (ALBERT; windowed: DeBERTa), spans (SpanBERT), draws
    with replacement (ELECTRA), similar words (MacBERT), an order of prediction (XLNet) or another
    share of each example (masked diffusion)."""
    rate: Annotated[Annotated[float, Field(gt=0.0, lt=1.0)] | None, labelled("Share predicted")] = (
        None
    )
    """Share of an example's tokens that is predicted."""
    last_rate: Annotated[float, Field(gt=0.0, lt=1.0)] | None = None
    """The share at the last step, towards which it moves from ``rate`` by the same amount each
    step (arXiv 2202.08005 asks for more than 15 % hidden; mmBERT, arXiv 2509.06888, lets it fall).
    Held-out text is measured with it. null = as ``rate``."""
    split: Annotated[list[Share], Field(min_length=3, max_length=3)] | None = None
    """Shares of the chosen that become [MASK], a random piece, or stay as they are."""
    longest: Annotated[
        Annotated[int, Field(ge=1, le=20)] | None, labelled("Longest run (words)")
    ] = None
    """Longest n-gram or span, in words."""
    dynamic: Annotated[bool | None, labelled("Drawn anew each time")] = None
    """Drawn afresh at each visit (RoBERTa), or once for each example (BERT)."""
    counting: Literal["bert", "fairseq"] = "bert"
    """``round(rate * n)``, at least 1, or ``int(rate * n + u)`` with a random u in 0..1
    (RoBERTa's code; uniform and whole_word only)."""
    ordering: Literal["released", "paper"] = "released"
    """ordering only: spans in an order drawn inside blocks, or one permutation of the whole."""

    leftward: Annotated[float, Field(gt=0.0, lt=1.0)] | None = None
    """masked_next_token only: share of the examples that are read from left to right, every piece
    told from those before it; null = 1/16 (GPT-BERT)."""

    @model_validator(mode="after")
    def _split_sums_to_one(self) -> Self:
        if self.split is not None and abs(sum(self.split) - 1.0) > 1e-6:
            raise ValueError(f"masking.split must sum to 1, not to {sum(self.split):g}")
        return self
