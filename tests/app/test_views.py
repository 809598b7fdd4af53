"""What a view gets back for what it sent."""

import asyncio
import threading
from functools import partial

import gradio as gr

from app.parts.controls import answer
from app.parts.plain import Kept, Line
from app.parts.views import answered
from core_models import InputError


async def waits(extra, question):
    return {"thread": threading.get_ident(), "said": question["said"], "extra": extra}


def works(extra, question):
    return {"thread": threading.get_ident(), "said": question["said"], "extra": extra}


def refuses(question):
    raise InputError("The number is 3; it must be 4.")


async def refuses_later(question):
    raise InputError("The number is 3; it must be 4.")


def test_a_coroutine_answers_on_the_loop_and_a_function_in_a_thread():
    async def both():
        question = {"rev": 4, "said": "a"}
        return [await answered(partial(reply, 1), question) for reply in (waits, works)]

    loop, thread = asyncio.run(both())
    here = threading.get_ident()
    assert loop == {"rev": 4, "error": None, "thread": here, "said": "a", "extra": 1}
    assert thread["thread"] != here
    assert {**thread, "thread": here} == loop


def test_a_reply_keeps_its_own_error():
    found = asyncio.run(answered(lambda question: {"error": "none"}, {"rev": 2}))
    assert found == {"rev": 2, "error": "none"}


def test_a_refusal_is_a_message():
    for reply in (refuses, refuses_later):
        found = asyncio.run(answered(reply, {"rev": 9}))
        assert found == {"rev": 9, "error": "The number is 3; it must be 4."}


def test_a_line_knows_the_settings_that_it_tells_by_their_labels():
    line = Line(names={"steps": "Steps", "data.format": "Format"})
    text = "data.format: is missing.\nsteps.more = 3: no.\nseed: no."
    assert line.postprocess(text) == {"text": text, "names": {"data.format": "Format"}}
    assert line.postprocess("Not now.") == {"text": "Not now."}
    assert line.postprocess(None) is None


def test_a_refused_value_is_called_as_its_control_is():
    with gr.Blocks():
        asked = {"seed": gr.Number(label="Seed of the positions"), "kept": Kept()}
        problem = Line(problem=True)
        answer([asked["seed"].input], lambda question: [], asked, [], problem)
    text = "seed is empty; it must be a whole number from 0 to 9."
    assert problem.postprocess(text)["names"] == {"seed": "Seed of the positions"}
