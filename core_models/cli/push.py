"""``push``: a finished run's model to the Hugging Face hub, with the user's own login."""

import argparse
import sys
from pathlib import Path
from typing import Any

from core_models.cli.arguments import add_json
from core_models.cli.output import Output, whole
from core_models.errors import InputError

HELP = """Send a finished run's model to the Hugging Face hub.

Shows what it will send and asks first. Log in once with: hf auth login"""
CARD = "README.md"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("run", metavar="RUN", help="a run folder, or a model folder")
    parser.add_argument("repository", metavar="OWNER/NAME", help="where to on the hub")
    parser.add_argument("--public", action="store_true", help="make a new repository public")
    parser.add_argument("--yes", action="store_true", help="do not ask; with --json, send at all")
    add_json(parser)


def run(arguments: argparse.Namespace, output: Output) -> int:
    """Show, ask, send."""
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi

    import core_models as cm
    from core_models.hub.fetch import is_hub_id, is_weights

    name = arguments.repository
    if not is_hub_id(name):
        raise InputError(f"{name[:100]!r} is no place on the hub; give owner/name.")
    folder = model_folder(Path(arguments.run))
    about = cm.inspect(folder)
    files = sorted(p for p in folder.iterdir() if p.is_file() and not p.name.startswith("."))
    contents: dict[str, bytes | Path] = {path.name: path for path in files}
    contents.setdefault(CARD, card(about, name).encode())
    api = HfApi()
    user = _asked(lambda: api.whoami()["name"])
    there = _asked(lambda: api.repo_exists(name))
    listed = _asked(lambda: api.list_repo_files(name)) if there else []
    # Of an earlier model: readers would take a single file for the model, and not our index.
    stale = sorted(file for file in listed if is_weights(file) and file not in contents)
    sizes = {n: len(c) if isinstance(c, bytes) else c.stat().st_size for n, c in contents.items()}
    found = {
        "repository": f"{api.endpoint}/{name}",
        "new": not there,
        "user": user,
        "files": dict(sorted(sizes.items())),
        "removed": stale,
    }
    if not arguments.json:
        output.line(f"{about.family}, {whole(about.parameters)} parameters, from {folder}:")
        output.table([[n, whole(size)] for n, size in sorted(sizes.items())], right=(1,))
        state = "public" if arguments.public else "private"
        where = "which is there: files of these names are replaced" if there else f"new, {state}"
        output.line(f"{whole(sum(sizes.values()))} bytes go to {api.endpoint}/{name} ({where})")
        if stale:
            output.line(f"weights of an earlier model are removed there: {', '.join(stale)}")
        output.line(f"as {user}.")
    agreed = arguments.yes or (not arguments.json and _agreed(output))
    if agreed:
        if not there:
            _asked(lambda: api.create_repo(name, private=not arguments.public, exist_ok=True))
        operations: list[CommitOperationAdd | CommitOperationDelete] = [
            *(CommitOperationAdd(path, content) for path, content in contents.items()),
            *(CommitOperationDelete(path, is_folder=False) for path in stale),
        ]
        _asked(lambda: api.create_commit(name, operations, commit_message="Send a model of Cloze"))
    if arguments.json:
        output.json({**found, "sent": bool(agreed)})
    else:
        output.line(f"Sent: {api.endpoint}/{name}" if agreed else "Nothing was sent.")
    return 0 if agreed else 1


def model_folder(place: Path) -> Path:
    """The model of a finished run, or the folder itself where it is a model's.

    Raises:
        InputError: there is no model, or the run has not finished.
    """
    from core_models.training.folder import RunFolder

    if (place / "status.json").exists():
        found = RunFolder(place)
        if found.state() != "finished" or not found.model_path.is_dir():
            raise InputError(
                f"The run in {place} is {found.state()}; only a finished one is sent. Let it "
                "finish, or give the folder of a model."
            )
        return found.model_path
    if not (place / "config.json").is_file():
        raise InputError(f"{place} is neither a run folder nor a model folder.")
    return place


def card(about: Any, name: str) -> str:
    """The page of a repository whose folder has none: what it is and how it is opened."""
    return (
        "---\nlibrary_name: transformers\ntags:\n- cloze\n---\n\n"
        f"# {name.partition('/')[2]}\n\n"
        f"{about.family}, {whole(about.parameters)} parameters, trained with Cloze. It answers: "
        f"{', '.join(about.heads) or 'nothing by itself'}.\n\n"
        f"```python\nimport core_models as cm\n\nmodel = cm.load({name!r})\n```\n"
    )


def _agreed(output: Output) -> bool:
    output.line("Send them? [y/N]")
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _asked(call: Any) -> Any:
    """A call to the hub; what goes wrong there is an InputError without its text."""
    from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError

    from core_models.hub.files import FAILURES, STRANGE

    try:
        return call()
    except LocalTokenNotFoundError:
        raise InputError("Nobody is logged in to the hub; run: hf auth login") from None
    except HfHubHTTPError as error:
        code = getattr(getattr(error, "response", None), "status_code", "no answer")
        raise InputError(
            f"The hub refused ({code}). Look whether your login may write there: hf auth whoami"
        ) from None
    except (*FAILURES, *STRANGE) as error:
        raise InputError(f"The hub cannot be reached ({type(error).__name__}).") from None
