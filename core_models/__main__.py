"""``python -m core_models VERB ...``: the core on the command line."""

import io
import os
import sys

from core_models.cli.main import main

if __name__ == "__main__":
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by whoever started this process
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Whatever the system's own encoding is; a file's name may hold bytes that are no text.
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    raise SystemExit(main())
