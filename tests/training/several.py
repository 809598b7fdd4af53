"""Train several runs one after the other in the same processes; used by test_processes.py.

``torchrun several.py CONFIG...``: starting two processes costs more than the runs themselves.
"""

import sys
from pathlib import Path

from accelerate.state import AcceleratorState

from core_models.errors import InputError
from core_models.training.process import train

for config in sys.argv[1:]:
    AcceleratorState._reset_state()
    try:
        train(Path(config), lambda line: None)
    except InputError as error:
        sys.stderr.write(f"{error}\n")
