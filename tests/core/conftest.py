"""A hub for the tests that fetch from one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from core_models.hub import files as hub_files
from tests.core.tiny_models import new, tiny
from tests.stand_in_hub import Hub, stand_in


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub, and an empty cache; what breaks off is tried again at once."""
    monkeypatch.setattr(hub_files.time, "sleep", lambda seconds: None)
    with stand_in(monkeypatch, tmp_path / "cache") as found:
        yield found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    new(tiny("bert-mini")).save(tmp_path / "bert")
    return tmp_path / "bert"
