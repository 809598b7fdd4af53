"""The page: Gradio lives here and only here.

The variables below must be set before Gradio is imported anywhere: without them it looks up hosts
outside this machine when it starts. Around every event it also asks matplotlib, where that is
installed, for its backend: a named one spares the first visitor a second of looking for one.
"""

import os

os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
os.environ.setdefault("MPLBACKEND", "agg")
