"""What every test shares: the marks' conditions, and an environment without surprises."""

import os

import pytest

# Before any library is imported: no reports to other hosts, no hub look-ups unless asked for.
os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
# Tiny models are quicker on one thread, and two threads on a busy machine wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
if os.environ.get("CLOZE_NETWORK") != "1":
    os.environ.setdefault("HF_HUB_OFFLINE", "1")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests whose condition does not hold here, with the reason."""
    for item in items:
        if item.get_closest_marker("network") and os.environ.get("CLOZE_NETWORK") != "1":
            item.add_marker(pytest.mark.skip(reason="needs the network: set CLOZE_NETWORK=1"))
        if item.get_closest_marker("gpu") and not _has_gpu():
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))


def _has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()
