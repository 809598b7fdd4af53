"""Opening a model without a browser, and waiting for it."""

from app.serving.session import Session
from core_models import InputError

NAME = "somebody/small-bert"


def opened(session: Session, text: str, visitor: str = "me") -> str:
    """Open a model and wait for it; its name."""
    job = session.open(text, visitor)
    assert job.done.wait(60)
    if job.problem:
        raise InputError(job.problem)
    return job.offer.name
