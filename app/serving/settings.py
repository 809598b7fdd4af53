"""What the environment may say about this server."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from app.runs.data import sources as run_sources
from app.runs.data.texts import MOST_BYTES
from app.runs.limits import NO_LIMITS, Limits
from app.runs.process import PLACE
from app.serving.gpu import lent
from app.serving.opened.policy import PARAMETERS, Policy
from app.serving.sign_in import Register
from core_models import InputError
from core_models.hub.fetch import is_hub_id

TRAIN = ("on", "off", "shared")
RUNS = Path(__file__).resolve().parents[2] / "runs"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of one server, read from environment variables."""

    port: int | None = None
    """PORT. None = Gradio's own rule: GRADIO_SERVER_PORT, else the first free one from 7860."""
    host: str | None = None
    """CLOZE_HOST. None = GRADIO_SERVER_NAME (which a Space sets), else 127.0.0.1."""
    model: str = "bert-mini"
    """CLOZE_MODEL, the model that the page opens with."""
    threads: int | None = None
    """CLOZE_THREADS, cores that the one model thread may use; None = all."""
    runs: Path = RUNS
    """CLOZE_RUNS, the folder with training runs."""
    slots: int = 1
    """CLOZE_TRAIN_SLOTS, how many runs may train at once."""
    training: bool = True
    """CLOZE_TRAIN, on, off or shared: whether visitors may train models."""
    shared: bool = False
    """CLOZE_TRAIN=shared: every page may stop and delete every run."""
    limits: Limits = NO_LIMITS
    """CLOZE_TRAIN_STEPS, CLOZE_TRAIN_PARAMETERS, CLOZE_TRAIN_MINUTES and CLOZE_TRAIN_UPLOAD_MB, of
    one run."""
    command: str | None = None
    """CLOZE_TRAIN_COMMAND, what starts a run, elsewhere for example; None = Python here."""
    register: Register | None = None
    """CLOZE_AUTH, a file with the names and passwords of those who may see the page; None = all."""
    lines: bool = False
    """CLOZE_LOG=json: a line of the output for each answer."""
    opening: Policy = field(default_factory=Policy)
    """CLOZE_OPEN, the hub ids in CLOZE_MODELS, CLOZE_MODEL_PARAMETERS and CLOZE_MODEL_MEMORY."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Read the variables; InputError names the one that cannot be used."""
        run_sources.allowed(environment)
        most = MOST_BYTES >> 20
        auth = _path(environment, "CLOZE_AUTH")
        upload = _number(environment, "CLOZE_TRAIN_UPLOAD_MB", 1, most) or most
        return cls(
            port=_number(environment, "PORT", 1, 65_535),
            host=_host(environment),
            model=environment.get("CLOZE_MODEL") or cls.model,
            threads=_number(environment, "CLOZE_THREADS", 1, 1_024),
            runs=_path(environment, "CLOZE_RUNS") or RUNS,
            slots=_number(environment, "CLOZE_TRAIN_SLOTS", 1, 64) or cls.slots,
            training=_choice(environment, "CLOZE_TRAIN", TRAIN) != "off" and not lent(environment),
            shared=_choice(environment, "CLOZE_TRAIN", TRAIN) == "shared",
            limits=Limits(
                steps=_number(environment, "CLOZE_TRAIN_STEPS", 1, 10**9),
                parameters=_number(environment, "CLOZE_TRAIN_PARAMETERS", 1, 10**12),
                minutes=_number(environment, "CLOZE_TRAIN_MINUTES", 1, 10**6),
                upload=upload << 20,
            ),
            command=_command(environment),
            register=Register.read(auth) if auth else None,
            lines=_choice(environment, "CLOZE_LOG", ("off", "json")) == "json",
            opening=_opening(environment),
        )


def _host(environment: Mapping[str, str]) -> str | None:
    """An address, one of IPv6 in the brackets that it has in a browser."""
    host = environment.get("CLOZE_HOST", "").strip()
    return (f"[{host.strip('[]')}]" if ":" in host else host) or None


def _path(environment: Mapping[str, str], name: str) -> Path | None:
    """A path; files of settings and quotes leave the ~ of a home to whoever reads it."""
    text = environment.get(name, "").strip()
    try:
        return Path(text).expanduser() if text else None
    except RuntimeError:
        raise InputError(
            f"{name} is {text!r}, and no home of that user is known here; give an absolute path."
        ) from None


def _command(environment: Mapping[str, str]) -> str | None:
    text = environment.get("CLOZE_TRAIN_COMMAND", "").strip()
    if text and PLACE not in text:
        raise InputError(
            f"CLOZE_TRAIN_COMMAND is {text!r}; it must have {PLACE} where what follows `python -m` "
            "is to stand, as in: ssh gpu1 'cd /srv/cloze && .venv/bin/python -m {run}'."
        )
    return text or None


def _opening(environment: Mapping[str, str]) -> Policy:
    """Who may open models; a server that others reach opens those of its list only."""
    local = run_sources.is_local(environment)
    modes = ("any", "list", "off") if local else ("list", "any", "off")
    # The variable names folders of models, too (core_models.model.folders).
    named = environment.get("CLOZE_MODELS", "").split(os.pathsep)
    parameters = _number(environment, "CLOZE_MODEL_PARAMETERS", 1, 10**12)
    return Policy(
        mode=_choice(environment, "CLOZE_OPEN", modes),
        ids=tuple(name for name in named if is_hub_id(name) and not Path(name).is_dir()),
        parameters=parameters or PARAMETERS,
        memory=(_number(environment, "CLOZE_MODEL_MEMORY", 1, 10**9) or 0) << 20,
        token=environment.get("HF_TOKEN", "").strip() or None,
    )


def _choice(environment: Mapping[str, str], name: str, among: Sequence[str]) -> Any:
    """One of several words; the first where nothing is said."""
    text = environment.get(name, "").strip().lower() or among[0]
    if text not in among:
        *first, last = among
        raise InputError(f"{name} is {text!r}; it must be {', '.join(first)} or {last}.")
    return text


def _number(environment: Mapping[str, str], name: str, least: int, most: int) -> int | None:
    text = environment.get(name, "").strip()
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
        raise InputError(f"{name} is {text!r}; it must be a whole number from {least} to {most}.")
    return int(text)
