"""Several processes under torchrun that need not import PyTorch, for test_processes.py.

Starting two processes costs more than the runs, and most of that is the import. So what torchrun
starts is this file as a program: it hands its environment and its output to the tests' process,
and ends as the child ends that is forked there. The child is what torchrun would have started.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]
PATIENCE = 200


def launch(work: Callable[[], None], processes: int) -> subprocess.CompletedProcess[str]:
    """Do some work in several processes under torchrun."""
    command = [sys.executable, "-m", "torch.distributed.run", f"--nproc_per_node={processes}"]
    children = []
    # A folder of its own: the address of a socket may have some hundred characters.
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{folder}/socket")
        listener.listen()
        listener.settimeout(PATIENCE)
        launcher = subprocess.Popen(
            [*command, __file__, listener.getsockname()],
            cwd=ROOT,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            for _ in range(processes):
                line, _ = listener.accept()
                with line:
                    children.append(_fork(line, work))
            output = launcher.communicate(timeout=PATIENCE)
        finally:
            for child in children:
                os.kill(child, signal.SIGKILL)  # if it has not ended
                os.waitpid(child, 0)
            launcher.kill()
            launcher.wait()
    return subprocess.CompletedProcess(command, launcher.returncode, *output)


def _fork(line: socket.socket, work: Callable[[], None]) -> int:
    """A child that does the work in place of the process at the other end of the line."""
    child = os.fork()
    if child:
        return child
    try:
        _, outputs, _, _ = socket.recv_fds(line, 1, 2)
        with line.makefile() as told:
            environment = json.loads(told.readline())
        for source, target in zip(outputs, (1, 2), strict=True):
            os.dup2(source, target)
        os.environ.clear()
        os.environ.update(environment)
        work()
        line.sendall(b"done")
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(0)


def main() -> None:
    """Wait for the child that stands in for this process."""
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(sys.argv[1])
        socket.send_fds(line, [b"."], [1, 2])
        line.sendall(json.dumps(dict(os.environ)).encode() + b"\n")
        sys.exit(line.recv(4) != b"done")


if __name__ == "__main__":
    main()
