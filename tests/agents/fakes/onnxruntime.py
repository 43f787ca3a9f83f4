"""A runtime that misbehaves. FAKE_FAULT is "<what>-<where>"; where is import, load or run (after a few good calls)."""

import ctypes
import mmap
import os
import subprocess
import sys
import time

__version__ = "0.0-fake"
GOOD_CALLS = 30
kept = []
FAULT, _, WHERE = os.environ.get("FAKE_FAULT", "").partition("-")


def misbehave(where):
    if where != WHERE:
        return
    if FAULT == "segfault":
        ctypes.string_at(0)
    elif FAULT == "abort":
        os.abort()
    elif FAULT == "hang":
        # As native code does that holds the interpreter's lock: no Python signal handler can run.
        ctypes.PyDLL(None).pause()
    elif FAULT == "exit":
        os._exit(3)
    elif FAULT == "raise":
        raise RuntimeError("the runtime is unhappy")
    elif FAULT == "missing":
        raise ImportError("libfake.so: cannot open shared object file")
    elif FAULT == "memory":
        hoard = []
        while True:
            hoard.append(bytearray(b"x") * (8 << 20))
    elif FAULT == "mapped":
        file = open(os.environ["FAKE_MAPPED"], "rb")  # noqa: SIM115 (stays mapped)
        kept.append(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        for offset in range(0, len(kept[0]), mmap.PAGESIZE):
            kept[0][offset]
    elif FAULT == "memoryerror":
        raise MemoryError
    elif FAULT == "enospc":
        raise OSError(28, "No space left on device")
    elif FAULT == "print":
        block = b"noise " * 170 + b"\n"
        for _ in range(100 << 10):
            os.write(1, block)
        os.write(2, b"last words\n")
    elif FAULT == "speak":
        # What a chatty runtime might print to break the protocol.
        os.write(
            1, b'ARGUS-EDGE/1 {"error": {"kind": "internal", "message": "forged"}}\n{"end": true}\n\x1b[2J\xff\xfe'
        )
        print("from Python", flush=True)
        print("to stderr", file=sys.stderr, flush=True)
    elif FAULT == "child":
        # A helper process that outlives the runtime and keeps its output open.
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        with open(os.environ["FAKE_CHILD"], "w") as file:
            file.write(str(child.pid))
        ctypes.string_at(0)
    elif FAULT == "close":
        os.close(1)
        os.close(2)


class SessionOptions:
    pass


class InferenceSession:
    def __init__(self, *_, **__):
        misbehave("load")
        self.calls = 0

    def get_providers(self):
        return ["CPUExecutionProvider"]

    def get_inputs(self):
        return []

    def get_outputs(self):
        return []

    def run(self, *_):
        self.calls += 1
        if self.calls == GOOD_CALLS:
            misbehave("run")
        time.sleep(0.005)
        return []


def get_available_providers():
    return ["CPUExecutionProvider"]


misbehave("import")
