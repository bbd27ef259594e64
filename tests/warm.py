"""A process that has imported what takes longest to import, and does each piece of work in a fork
of its own: fresh but for these imports. rankone is not among them.

Run as a script it reads a piece of work per line and writes the exit status of each.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
import traceback
from pathlib import Path

IMPORTS = (
    "torch torch.export torch.onnx numba matplotlib.pyplot transformers.pipelines onnxscript "
    "onnxruntime sklearn.model_selection"
).split()
SECONDS = 300


class Warm:
    def __init__(self, scratch: Path, environment: dict[str, str]) -> None:
        self.scratch = scratch
        self.process = subprocess.Popen(
            [sys.executable, __file__],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def python(self, text: str, directory: Path) -> str:
        """Run a block of Python; what it prints."""
        return self._run({"code": text, "argv": ["-c"]}, directory)

    def rankone(self, arguments: list[str], directory: Path) -> str:
        """Run the command with these arguments; what it prints."""
        return self._run({"argv": ["rankone", *arguments]}, directory)

    def _run(self, work: dict[str, object], directory: Path) -> str:
        out, err = self.scratch / "out", self.scratch / "err"
        files = {"directory": str(directory), "out": str(out), "err": str(err)}
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps({**work, **files}), file=self.process.stdin, flush=True)
        status = self.process.stdout.readline().strip()
        printed = out.read_text()
        assert status == "0", f"{work}\nended with {status}\n{printed}\n{err.read_text()}"
        return printed

    def close(self) -> None:
        self.process.communicate()


def serve() -> None:
    for name in IMPORTS:
        importlib.import_module(name)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            work(json.loads(line))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def work(given: dict[str, str]) -> None:
    status: object = 1
    signal.alarm(SECONDS)
    try:
        for stream, name in ((0, os.devnull), (1, given["out"]), (2, given["err"])):
            os.dup2(os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC), stream)
        os.chdir(given["directory"])
        sys.argv, sys.path[0] = list(given["argv"]), ""
        if "code" in given:
            exec(compile(given["code"], "<block>", "exec"), {"__name__": "__main__"})
        else:
            runpy.run_module("rankone", run_name="__main__")
        status = 0
    except SystemExit as end:
        status = end.code or 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status if isinstance(status, int) else 1)


if __name__ == "__main__":
    serve()
