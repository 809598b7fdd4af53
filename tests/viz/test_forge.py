"""Charts of the Forge lab: what is drawn, what is refused."""

import pytest

from viz.forge import MOST_GAPS, Choice, Gap, generated, losses

DRAWN = Choice(text="<b>", probability=0.25, drawn=True, true=False)
TRUE = Choice(text="sun", probability=0.5, drawn=False, true=True)
GAP = Gap(position=3, text="sun", drawn="<b>", choices=[TRUE, DRAWN])


def test_bars_say_which_word_was_drawn_and_which_is_true():
    drawn, true, heads = generated([GAP]).data
    assert (drawn.name, list(drawn.x), drawn.text[0]) == ("drawn: a forgery", [0.25], "25\u00a0%")
    assert (true.name, list(true.x)) == ("the word of the text", [0.5])
    assert heads.text[0] == "<b>sun</b> → [MASK] → <b>&lt;b&gt;</b>"
    lucky = Choice(text="sun", probability=0.5, drawn=True, true=True)
    (bar, _) = generated([Gap(position=0, text="sun", drawn="sun", choices=[lucky])]).data
    assert bar.name.endswith("real")


def test_more_gaps_than_fit_are_in_the_table_alone():
    figure = generated([GAP] * (MOST_GAPS + 2))
    assert len(figure.data[0].x) == MOST_GAPS
    bars = [trace for trace in figure.data if trace.type == "bar"]
    assert all(bar.width < 1 for bar in bars), "a bar stays in its row, however far the next one is"
    assert len(figure.layout.meta["rows"]) == 2 * (MOST_GAPS + 2)
    assert figure.layout.meta["rows"][1] == [3, "sun", "<b>", 0.25, "✓"]
    with pytest.raises(ValueError, match="nothing to draw"):
        generated([])


def test_losses_stand_at_their_tokens():
    figure = losses(["a", "<b>", "a"], [(1, 2.5)], [0.1, 0.2, 0.3])
    generator, discriminator = figure.data
    assert (list(generator.x), list(generator.y)) == (["&lt;b&gt;"], [2.5])
    assert len(set(discriminator.x)) == 3, "tokens that read the same stand apart"
    assert figure.layout.meta["rows"][1] == [1, "<b>", 2.5, 0.2]


def test_one_word_is_one_word():
    gap = Gap(
        position=1,
        text="a",
        drawn="b",
        choices=[Choice(text="b", probability=0.5, drawn=True, true=False)],
    )
    assert generated([gap]).layout.meta["alt"] == "1 word was hidden and became “b”."
