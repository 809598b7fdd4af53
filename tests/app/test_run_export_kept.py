"""Weights of several files as one: the header is as the format asks for it."""

import torch
from safetensors.torch import load, save_file

from app.runs.export import archive as run_export


def test_joined_weights_are_aligned_and_whole(tmp_path):
    """The data begins at a multiple of eight, whatever the names are long."""
    for length in range(1, 9):
        first, second = tmp_path / f"a{length}", tmp_path / f"b{length}"
        tensors = {"x" * length: torch.arange(3.0), "y": torch.arange(5)}
        save_file({"x" * length: tensors["x" * length]}, first)
        save_file({"y": tensors["y"]}, second)
        size, chunks = run_export._whole([first, second])
        content = b"".join(chunks)
        assert len(content) == size
        assert int.from_bytes(content[:8], "little") % 8 == 0
        found = load(content)
        assert found.keys() == tensors.keys()
        assert all(torch.equal(found[name], tensor) for name, tensor in tensors.items())
