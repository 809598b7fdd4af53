"""``python -m core_models VERB ...``: the core on the command line."""

import io
import sys

from core_models.cli.main import main

if __name__ == "__main__":
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")  # whatever the system's own encoding is
    raise SystemExit(main())
