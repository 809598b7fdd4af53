"""More questions than can be answered: refused at once; all others answered, as before."""

import asyncio

from app.serving.ask import Ask, Mark
from app.serving.batcher import BusyError


def ask(number):
    return Ask(text=f"The river {number} is long.", model="bert-mini", marks=(Mark(position=2),))


def test_overload_and_recovery(gate, session):
    """A second of questions for a server that answers a hundred, all at one moment."""
    count = gate.size(400, 5_000)
    first = gate.random().randrange(10**9)
    ended = []

    async def asked(number):
        try:
            found = await session.fill(ask(number))
        except BusyError as error:
            found = error
        ended.append(found)
        return found

    async def lesson():
        await session.fill(ask(first - 1))
        found = await asyncio.gather(*(asked(first + number) for number in range(count)))
        await session.fill(ask(first + count))  # as if nothing had been
        return found

    found = asyncio.run(lesson())
    refused = [answer for answer in found if isinstance(answer, BusyError)]
    answered = [answer for answer in found if not isinstance(answer, BusyError)]
    assert len(refused) + len(answered) == count
    assert len(answered) >= 256
    assert len(refused) >= count - 2 * 256
    assert refused
    assert ended[: len(refused)] == refused  # at once: before the first answer
    assert all(answer.again > 0 for answer in refused)
    for number, answer in enumerate(found):
        if not isinstance(answer, BusyError):
            assert answer.text == ask(first + number).text
