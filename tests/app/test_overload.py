"""More questions than can be answered: refused at once, all others answered, and soon as before."""

import asyncio
import time

from app.serving.ask import Ask, Mark
from app.serving.batcher import BusyError

RECOVERED_SECONDS = 10.0
QUICK_SECONDS = 0.2


def ask(number):
    return Ask(text=f"The river {number} is long.", model="bert-mini", marks=(Mark(position=2),))


def test_overload_and_recovery(gate, session):
    """A second of questions for a server that answers a hundred, all at one moment."""
    count = gate.size(400, 5_000)
    first = gate.random().randrange(10**9)

    async def timed(number):
        began = time.monotonic()
        try:
            return await session.fill(ask(number)), time.monotonic() - began
        except BusyError as error:
            return error, time.monotonic() - began

    async def lesson():
        await session.fill(ask(first - 1))
        found = await asyncio.gather(*(timed(first + number) for number in range(count)))
        last = first + count

        async def quick():
            nonlocal last
            last += 1
            answer, seconds = await timed(last)
            return not isinstance(answer, BusyError) and seconds < QUICK_SECONDS

        ends = time.monotonic() + RECOVERED_SECONDS
        while not await quick():
            assert time.monotonic() < ends
        return found

    found = asyncio.run(lesson())
    refused = [seconds for answer, seconds in found if isinstance(answer, BusyError)]
    answered = [answer for answer, _ in found if not isinstance(answer, BusyError)]
    assert len(refused) + len(answered) == count
    assert len(answered) >= 256
    assert len(refused) >= count - 2 * 256
    assert refused
    assert max(refused) < 1.0
    assert all(answer.again > 0 for answer, _ in found if isinstance(answer, BusyError))
    for number, (answer, _) in enumerate(found):
        if not isinstance(answer, BusyError):
            assert answer.text == ask(first + number).text
