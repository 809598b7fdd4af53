"""Reading and checking ``config.json``, and finding the files that it names."""

import difflib
import json
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from core_models import plain_files
from core_models.errors import InputError, not_json
from core_models.families import size
from core_models.training.data_schema import DataSettings
from core_models.training.plan import check
from core_models.training.schema import ModelOverrides, Settings

__all__ = ["ASSETS", "HARMLESS", "ModelOverrides", "Settings", "changes", "parse", "read"]

ASSETS = Path(__file__).resolve().parents[2] / "assets"

Whole = TypeVar("Whole", bound=BaseModel)

# These may change between two parts of a run without changing what is computed.
HARMLESS = frozenset(
    {"name", "description", "threads", "tracker", "report_every", "validate_every", "checkpoints"}
    | {"compare_from_scratch"}
)


END = frozenset({"steps", "schedule.decay", "schedule.cooldown"})
"""Where a run ends and how its learning rate falls: these may change as long as it has not."""


def parse(values: Any) -> Settings:
    """Check plain values as read from JSON; InputError lists everything that is wrong.

    A checkpoint is not opened here, so what depends on its family is checked when the run starts.
    """
    settings = validated(Settings, values)
    if settings.model.size is not None:
        check(settings, size(settings.model.size))
    return settings


def read(path: Path) -> Settings:
    """Read ``config.json``; InputError when it is missing, not JSON or not valid."""
    values = read_values(path)
    try:
        return parse(values)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def validated(part: type[Whole], values: Any) -> Whole:
    """Plain values as a part; InputError lists everything that is wrong."""
    # Through JSON, because strict mode then still reads 1 as a float and a list as a list.
    try:
        return part.model_validate_json(json.dumps(values))
    except ValidationError as error:
        raise InputError(_explain(error, part)) from error


def read_values(path: Path) -> Any:
    """What a JSON file holds; InputError when it is missing or not JSON."""
    try:
        return json.loads(plain_files.read(path))
    except FileNotFoundError:
        raise InputError(f"There is no file {path}.") from None
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path} is not JSON: {error.msg} (line {error.lineno}, column {error.colno})."
        ) from error
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read: {not_json(error)}") from error


def changes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Paths of the values that differ between two settings as JSON, the harmless ones left out."""
    left, right = dict(_leaves(before)), dict(_leaves(after))
    return [
        path
        for path in sorted(left.keys() | right.keys())
        if left.get(path) != right.get(path) and path.split(".")[0] not in HARMLESS
    ]


def refuse_folder(path: Path, file: str = "config.json") -> None:
    """InputError for a folder that is given in place of the file in it."""
    if (path / file).is_file():
        raise InputError(f"{path} is a folder; give the file {path / file}.")


def refuse_filled(folder: Path) -> None:
    """InputError where a new run or race would write among other files, or replace some."""
    names = sorted(item.name for item in folder.iterdir()) if folder.is_dir() else []
    if names:
        raise InputError(
            f"{folder} already holds other files, such as {names[0]!r}; allowed is a new or an "
            "empty folder. Choose another folder."
        )


def resolve_texts(patterns: list[str], beside: Path, settings: str = "config.json") -> list[Path]:
    """Turn ``data.texts`` into files: beside ``config.json`` first, then in the assets.

    Args:
        patterns: of files.
        beside: folder of the settings.
        settings: name of their file, for the message.

    Raises:
        InputError: a pattern matches nothing.
    """
    found: list[Path] = []
    for pattern in patterns:
        matches: list[Path] = []
        for root in (beside, ASSETS):
            matches = _matches(pattern, root)
            if matches:
                break
        if not matches:
            raise InputError(
                f"data.texts: nothing matches {pattern!r}, neither beside {settings} ({beside}) "
                f"nor in the project's assets."
            )
        found.extend(path for path in matches if path not in found)
    return found


def check_texts(data: DataSettings, recipe: Path) -> None:
    """InputError where texts of a recipe are missing; nobody knows the folder of its copy."""
    recipe = recipe.resolve()
    named = [*data.texts, *data.training_only, *data.held_out_texts]
    resolve_texts(named, recipe.parent, recipe.name)


def texts_in_full(data: dict[str, Any], beside: Path) -> dict[str, Any]:
    """A part ``data`` with files that lie in a folder named in full, for a copy elsewhere."""
    found = dict(data)
    for name in ("texts", "training_only", "held_out_texts"):
        if name in data:
            found[name] = [
                str(beside / text)
                if not Path(text).is_absolute() and any(beside.glob(text))
                else text
                for text in data[name]
            ]
    return found


def resolve_folder(name: str, beside: Path) -> str:
    """A folder beside ``config.json`` where there is one, else the name as it stands."""
    candidate = beside / name
    return str(candidate) if candidate.is_dir() else name


def _matches(pattern: str, root: Path) -> list[Path]:
    path = Path(pattern)
    if path.is_absolute():
        root, pattern = Path(path.anchor), str(path.relative_to(path.anchor))
    try:
        return sorted(root.glob(pattern))
    except (ValueError, NotImplementedError, IndexError) as error:
        raise InputError(f"data.texts: {pattern!r} is not a usable pattern: {error}") from error


def _leaves(value: Any, path: str = "") -> list[tuple[str, Any]]:
    if not isinstance(value, dict):
        return [(path, value)]
    return [
        leaf
        for key, child in value.items()
        for leaf in _leaves(child, f"{path}.{key}" if path else str(key))
    ]


def _explain(error: ValidationError, whole: type[BaseModel]) -> str:
    lines = []
    for item in error.errors(include_url=False):
        where = ".".join(str(part) for part in item["loc"] if part != "[key]") or "config.json"
        if item["type"] == "extra_forbidden":
            lines.append(f"{where}: no such field.{_suggestion(item['loc'], whole)}")
        elif item["type"] == "missing":
            lines.append(f"{where}: is missing.")
        elif item["type"] == "value_error":
            lines.append(str(item["ctx"]["error"]) + ".")
        else:
            lines.append(f"{where} = {json.dumps(item['input'], default=str)}: {item['msg']}.")
    return "\n".join(lines)


def _suggestion(location: tuple[int | str, ...], whole: type[BaseModel]) -> str:
    part = whole
    for name in location[:-1]:
        field = part.model_fields.get(str(name))
        if not (field and isinstance(field.annotation, type)):
            return ""
        if not issubclass(field.annotation, BaseModel):
            return ""
        part = field.annotation
    near = difflib.get_close_matches(str(location[-1]), list(part.model_fields), n=1)
    if near:
        return f" Did you mean {near[0]!r}?"
    return f" Allowed: {', '.join(part.model_fields)}."
