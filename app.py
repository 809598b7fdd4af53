import argparse
import gc
import os
import signal
import tempfile

ABOUT = """\
Opens the page on http://127.0.0.1:7860. It takes no arguments: its settings are environment
variables, such as PORT and CLOZE_MODEL. docs/hosting.md lists them all."""

if __name__ == "__main__":
    argparse.ArgumentParser(usage="[PORT=8000] python app.py", description=ABOUT).parse_args()
    try:
        tempfile.gettempdir()
    except FileNotFoundError:  # a container that may write nowhere
        raise SystemExit(
            "The page could not start: no folder for temporary files can be written. Name one with "
            "TMPDIR=, or give a container one at /tmp (--tmpfs /tmp)."
        ) from None
    # Nothing is to be saved yet; the first process of a container hears no signal by itself.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(128 + signal.SIGTERM))
    gc.disable()  # until all is there (launch): nearly all that is made before that, stays
    from app.main import launch  # after --help, which need not wait for it

    launch()
