"""What is fuzzed: each parser of something that a board or a stranger wrote, its seeds, and how it may refuse.

A target is a function of bytes. It may return, or raise ``ArgusError`` (the host's parsers) or ``Fault`` (the agent's):
both are accounts that a person can read. Whatever else comes out of it is a finding.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import struct
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from argus_edge.agents import assemble, home, runs, wire
from argus_edge.agents.sensors import raspberrypi, tegrastats
from argus_edge.artifacts import parse_artifact
from argus_edge.bench import samples
from argus_edge.bench.context import Context
from argus_edge.bench.energy import read_meter
from argus_edge.bench.fetching import read_result
from argus_edge.bench.onnx_files import onnx_component
from argus_edge.bench.report import make_report
from argus_edge.bench.tflite_files import tflite_component
from argus_edge.bench.torch_files import torch_component
from argus_edge.bundles import load_arrays, read_bundle
from argus_edge.devices import known_hosts
from argus_edge.devices.agent_client import AgentClient
from argus_edge.devices.inventory import Inventory
from argus_edge.devices.mock import MockTransport
from argus_edge.errors import ArgusError
from argus_edge.gate.budget import parse_budget
from argus_edge.judge.table import read_table
from argus_edge.schema.base import Source
from argus_edge.schema.bench import BenchReport
from argus_edge.schema.device import DeviceEntry
from argus_edge.text import clean

ROOT = Path(__file__).resolve().parents[2]
SCRATCH = Path(tempfile.mkdtemp(prefix="argus-fuzz-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
ALLOWED = (ArgusError, home.Fault)
ENTRY = DeviceEntry(name="board", host="pi@board")


@dataclass(frozen=True)
class Target:
    """One parser.

    Attributes
    ----------
    parse
        Takes the bytes.
    seeds
        Gives inputs that are in order; none of them may be refused.
    dictionary
        Words that the fuzzer may put in.
    """

    parse: Callable[[bytes], object]
    seeds: Callable[[], Iterable[bytes]]
    dictionary: tuple[str, ...] = ()


def in_file(name: str, parse: Callable[[Path], object]) -> Callable[[bytes], object]:
    """Return a parser of bytes from one of a file."""
    path = SCRATCH / name

    def run(data: bytes) -> object:
        path.write_bytes(data)
        return parse(path)

    return run


# ---------------------------------------------------------------- what a board says


def protocol(data: bytes) -> None:
    """Every kind of answer, from the same lines."""
    text = data.decode("utf-8", "replace")
    lines = text.split("\n")
    device = MockTransport()
    device.on(wire.FOLLOW, lines)
    client = AgentClient(device, ENTRY, "agent.pyz")
    for chunk in client.follow("run-1"):
        for event in chunk.events:
            clean(str(event.error), limit=100)


def call(method: Callable[[AgentClient], object]) -> Callable[[bytes], None]:
    """Return a parser of what one command answers."""
    from argus_edge.devices.transport import Completed

    def run(data: bytes) -> None:
        device = MockTransport()
        for word in wire.COMMANDS:
            device.on(word, Completed(0, data.decode("utf-8", "replace"), ""))
        method(AgentClient(device, ENTRY, "agent.pyz"))

    return run


def journal(data: bytes) -> None:
    """The agent's reading of a journal that anything may have been written into, and what the host makes of it."""
    runs_folder = SCRATCH / "home" / wire.RUNS_FOLDER / "run-1"
    runs_folder.mkdir(parents=True, exist_ok=True)
    (runs_folder / wire.JOB_FILE).write_text(json.dumps({"parts": [{"name": "null", "runtime": "null"}]}))
    (runs_folder / wire.JOURNAL_FILE).write_bytes(data)
    status = runs.status(str(SCRATCH / "home"), "run-1")
    made = assemble.result(str(runs_folder), status["state"], status["error"])
    refused(lambda: call(lambda client: client.status("run-1"))(wire.frame(status).encode()))
    (SCRATCH / "result.json").write_text(json.dumps(made))
    refused(lambda: read_result({wire.RESULT_FILE: SCRATCH / "result.json"}, "run-1"))


def refused(action: Callable[[], object]) -> None:
    """Run it; a refusal by name is in order."""
    try:
        action()
    except ALLOWED:
        return


class _Run:
    """A real run of the harness: its context, its result and its samples."""

    found: tuple[Context, bytes, bytes] | None = None

    @classmethod
    def get(cls) -> tuple[Context, bytes, bytes]:
        if cls.found is None:
            cls.found = cls._make()
        return cls.found

    @staticmethod
    def _make() -> tuple[Context, bytes, bytes]:
        from argus_edge.bench import drive
        from argus_edge.bench.options import Options, scenario_of
        from argus_edge.bench.prepare import prepare
        from argus_edge.bench.request import Request
        from argus_edge.schema.agent import Warmup
        from argus_edge.store.records import Store

        kept: dict[str, bytes] = {}
        reading = drive.read_result

        def keep(files, run):
            kept.update({name: path.read_bytes() for name, path in files.items()})
            return reading(files, run)

        drive.read_result = keep
        store = Store(f"sqlite:///{SCRATCH}/runs.db")
        options = Options(
            runtime="null", scenario=scenario_of("single-stream", duration=0.01), warmup=Warmup(fixed_calls=1)
        )
        entry = DeviceEntry(name="local", python=os.sys.executable, home=str(SCRATCH / "device"))
        try:
            outcome = drive.bench(prepare(Request(None, options)), entry, store)
        finally:
            drive.read_result = reading
        context = Context.from_json(store.documents(outcome.report.run)[1])
        return context, kept[wire.RESULT_FILE], _few_samples()


def _few_samples() -> bytes:
    fields = [4.0, 4.0, 2.0, 1.0] + [0.0] * (struct.calcsize(wire.SAMPLE_HEADER) // 8 - 4)
    header = struct.pack(wire.SAMPLE_HEADER, *fields).ljust(wire.SAMPLE_HEADER_BYTES, b"\0")
    return header + np.arange(1.0, 9.0).astype("<f8").tobytes()


def result(data: bytes) -> None:
    """The agent's result, and the report made of it."""
    context, _, raw = _Run.get()
    (SCRATCH / "r.json").write_bytes(data)
    (SCRATCH / "s.bin").write_bytes(raw)
    files = {wire.RESULT_FILE: SCRATCH / "r.json", wire.SAMPLES_FILE % 0: SCRATCH / "s.bin"}
    report = make_report(context, read_result(files, context.run), files, None)
    report.model_dump_json()


def a_result() -> Iterable[bytes]:
    """A real one; and one with few samples, so that the fuzzer is not kept busy with the figures."""
    _, made, _ = _Run.get()
    document = json.loads(made)
    document["parts"][0]["samples_count"] = 4
    yield json.dumps(document).encode()


def stats(data: bytes) -> None:
    """NVIDIA's and Raspberry Pi's tools: no refusal at all, whatever they print."""
    text = data.decode("utf-8", "replace")
    for parse in (tegrastats.tegrastats, tegrastats.nvpmodel, raspberrypi.throttled, raspberrypi.rails):
        json.dumps(parse(text), allow_nan=False)


# ---------------------------------------------------------------- models

MODEL = b"\x08\x08"  # an IR version and nothing else


def bundle(data: bytes) -> None:
    """A manifest in a folder with a file in it."""
    folder = SCRATCH / "bundle"
    folder.mkdir(exist_ok=True)
    (folder / "model.onnx").write_bytes(MODEL)
    (folder / "manifest.json").write_bytes(data)
    read_bundle(folder)


def a_manifest() -> Iterable[bytes]:
    """One component, one file."""
    file = {"path": "model.onnx", "bytes": len(MODEL), "sha256": hashlib.sha256(MODEL).hexdigest()}
    tensor = {"name": "x", "dtype": "float32", "shape": ["n", 3]}
    values = {"minimum": -1.0, "maximum": 1.0, "fill": "normal"}
    component = {
        "name": "image",
        "role": "model",
        "format": "onnx",
        "precision": "fp32",
        "file": file,
        "inputs": [dict(tensor, values=values)],
        "outputs": [tensor],
        "dims": [{"name": "n", "minimum": 1, "maximum": 8, "typical": 1}],
        "params": 1,
        "weight_bytes": 4,
        "converter": "by hand",
        "macs": [{"dims": {"n": 1}, "macs": 9, "by_counter": {"onnx_graph": 9}, "disagreement": 0.0}],
    }
    manifest = {
        "kind": "bundle",
        "schema_version": 1,
        "name": "tiny",
        "family": "clip",
        "architecture": "CLIPModel",
        "source_id": "tiny",
        "format": "onnx",
        "precision": "fp32",
        "random_weights": True,
        "parity_passed": True,
        "components": [component],
        "unit_of_work": {
            "task": "component",
            "description": "a call",
            "steps": [{"component": "image", "phase": "encode"}],
        },
    }
    yield json.dumps(manifest).encode()


def an_onnx() -> Iterable[bytes]:
    """Two small graphs: one with a table and external data, one with a subgraph."""
    from onnx import TensorProto, helper

    table = helper.make_tensor("table", TensorProto.FLOAT, [4, 2], np.zeros(8, "<f4").tobytes(), raw=True)
    far = TensorProto(name="far", data_type=TensorProto.FLOAT, dims=[1], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", "far.bin"), ("offset", "0"), ("length", "4")):
        far.external_data.add(key=key, value=value)
    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, ["n", 3])
    out = helper.make_tensor_value_info("out", TensorProto.FLOAT, ["n", 3, 2])
    (SCRATCH / "far.bin").write_bytes(bytes(4))
    for tensors in ([table], [table, far]):
        graph = helper.make_graph([helper.make_node("Gather", ["table", "ids"], ["out"])], "g", [ids], [out], tensors)
        yield helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)]).SerializeToString()


def a_tflite() -> Iterable[bytes]:
    """A graph of one operator and one input, built with flatbuffers field by field."""
    import flatbuffers

    build = flatbuffers.Builder(256)
    name = build.CreateString("x")
    build.StartVector(4, 2, 4)
    build.PrependInt32(8)
    build.PrependInt32(1)
    shape = build.EndVector()
    build.StartObject(8)
    build.PrependUOffsetTRelativeSlot(0, shape, 0)
    build.PrependUint32Slot(2, 0, 0)
    build.PrependUOffsetTRelativeSlot(3, name, 0)
    tensor = build.EndObject()
    build.StartVector(4, 1, 4)
    build.PrependUOffsetTRelative(tensor)
    tensors = build.EndVector()
    build.StartVector(4, 1, 4)
    build.PrependInt32(0)
    inputs = build.EndVector()
    build.StartObject(9)
    operator = build.EndObject()
    build.StartVector(4, 1, 4)
    build.PrependUOffsetTRelative(operator)
    operators = build.EndVector()
    build.StartObject(5)
    build.PrependUOffsetTRelativeSlot(0, tensors, 0)
    build.PrependUOffsetTRelativeSlot(1, inputs, 0)
    build.PrependUOffsetTRelativeSlot(3, operators, 0)
    graph = build.EndObject()
    build.StartVector(4, 1, 4)
    build.PrependUOffsetTRelative(graph)
    graphs = build.EndVector()
    build.StartObject(4)
    code = build.EndObject()
    build.StartVector(4, 1, 4)
    build.PrependUOffsetTRelative(code)
    codes = build.EndVector()
    build.StartVector(1, 4, 1)
    for byte in b"\4\3\2\1":
        build.PrependByte(byte)
    data = build.EndVector()
    build.StartObject(3)
    build.PrependUOffsetTRelativeSlot(0, data, 0)
    buffer = build.EndObject()
    build.StartVector(4, 1, 4)
    build.PrependUOffsetTRelative(buffer)
    buffers = build.EndVector()
    build.StartObject(8)
    build.PrependUint32Slot(0, 3, 0)
    build.PrependUOffsetTRelativeSlot(1, codes, 0)
    build.PrependUOffsetTRelativeSlot(2, graphs, 0)
    build.PrependUOffsetTRelativeSlot(4, buffers, 0)
    build.Finish(build.EndObject(), b"TFL3")
    yield bytes(build.Output())


def zipped(members: dict[str, bytes]) -> bytes:
    """Return an archive, uncompressed, so that a changed byte reaches the member."""
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return raw.getvalue()


def a_torch_file() -> Iterable[bytes]:
    """An exported program's shape, and a TorchScript file's."""
    value = {"dtype": 7, "sizes": [{"as_int": 1}, {"as_expr": {"expr_str": "Symbol('s0', integer=True)"}}]}
    module = {
        "graph_module": {
            "graph": {"tensor_values": {"x": value}},
            "signature": {"input_specs": [{"user_input": {"arg": {"as_tensor": {"name": "x"}}}}]},
        }
    }
    yield zipped({"m/models/model.json": json.dumps(module).encode()})
    yield zipped({"m/code/x.py": b"", "m/constants.pkl": b""})


def an_npz() -> Iterable[bytes]:
    """Arrays as inputs and golden outputs travel."""
    raw = io.BytesIO()
    np.savez(raw, ids=np.arange(6).reshape(2, 3), pixels=np.zeros((1, 2), np.float32))
    yield raw.getvalue()


# ---------------------------------------------------------------- text files of the user


def a_report() -> Iterable[bytes]:
    """A real bench report."""
    context, made, raw = _Run.get()
    document = json.loads(made)
    document["parts"][0]["samples_count"] = 4
    (SCRATCH / "r.json").write_text(json.dumps(document))
    (SCRATCH / "s.bin").write_bytes(raw)
    files = {wire.RESULT_FILE: SCRATCH / "r.json", wire.SAMPLES_FILE % 0: SCRATCH / "s.bin"}
    yield make_report(context, read_result(files, context.run), files, None).model_dump_json().encode()


def budgets() -> Iterable[bytes]:
    """The shipped ones."""
    for path in sorted((ROOT / "profiles" / "budgets").glob("*.yaml")):
        yield path.read_bytes()


def hosts(data: bytes) -> None:
    """known_hosts, and the judgement of a key."""
    lines = known_hosts.parse(data.decode("utf-8", "replace"))
    found = known_hosts.lines_for(lines, "board")
    known_hosts.algorithms(found)
    known_hosts.judge(found, "board", b"key", None)


CSV = b"sample_id,logprob_1,logprob_2,logprob_3,human_score\na,-0.1,-2,-3,1\nb,-1,-0.5,-inf,2\n"
KNOWN = (
    b"board ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0000000000000000000000000000000000000000000 x\n"
    b"|1|aGVsbG8=|aGVsbG8= ssh-rsa AAAA\n@revoked *.lab ssh-rsa AAAA\n"
)
LINE = (
    b"RAM 1903/3964MB (lfb 2x1MB) SWAP 10/1982MB (cached 0MB) CPU [12%@1479,off,3%@102,0%@102] EMC_FREQ 2%@1600 "
    b"GR3D_FREQ 76%@[305,306] PLL@38C CPU@41.5C/43C POM_5V_IN 2451/2451 VDD_GPU_SOC 3977mW/3977mW/4000mW"
)
TOOLS = (
    LINE,
    b"NV Fan Mode:quiet\nNV Power Mode: MODE_15W\n2\n",
    b"throttled=0x50005",
    b"VDD_CORE_A current(7)=1.03A\n VDD_CORE_V volt(15)=0.72V\n",
)
EVENTS = [
    {"event": "started", "t": 1.0, "wall": 1.7e9, "pid": 1, "start": 2, "boot_id": "x", "agent_sha256": None},
    {"event": "part", "t": 1.1, "wall": 1.7e9, "part": 0, "message": "null", "available": 10},
    {"event": "phase", "t": 1.2, "wall": 1.7e9, "part": 0, "phase": "steady", "total_s": 1.0},
    {"event": "sensor", "t": 1.3, "wall": 1.7e9, "part": 0, "start": 1.3, "took_s": 0.1, "values": {"power_w": 2.0}},
    {"event": "note", "t": 1.4, "wall": 1.7e9, "part": 0, "figures": {"memory": {"pss": 1}, "notes": ["x"]}},
    {"event": "part-failed", "t": 1.5, "wall": 1.7e9, "part": 0, "state": "failed", "error": None},
    {
        "event": "ended",
        "t": 1.6,
        "wall": 1.7e9,
        "state": "failed",
        "error": {"kind": "busy", "message": "", "detail": {}},
    },
]
A_JOURNAL = b"".join(json.dumps(event).encode() + b"\n" for event in EVENTS)
STATUS = {"run": "run-1", "state": "running", "error": None, "started_wall": 1.0, "parts": 1, "journal_bytes": 3}
JSON_WORDS = ("null", "true", "1e999", "-1", "[]", "{}", '""', "NaN", "1e308", "\\\\u0000", "\\\\ud800")

TARGETS: dict[str, Target] = {
    "protocol": Target(
        protocol,
        lambda: [b"noise\n" + wire.frame({"offset": 9, "events": EVENTS}).encode() + wire.frame({}).encode()],
        (wire.MAGIC, *JSON_WORDS),
    ),
    "status": Target(
        call(lambda client: client.status("run-1")), lambda: [wire.frame(STATUS).encode()], (wire.MAGIC, *JSON_WORDS)
    ),
    "journal": Target(journal, lambda: [A_JOURNAL], JSON_WORDS),
    "result": Target(result, a_result, JSON_WORDS),
    "samples": Target(
        in_file("samples.bin", lambda path: samples.read_samples(path, count=4)), lambda: [_few_samples()]
    ),
    "npz": Target(in_file("arrays.npz", load_arrays), an_npz, ("descr", "fortran_order", "<f4", "|O")),
    "sensors": Target(stats, lambda: TOOLS, ("RAM", "EMC_FREQ", "GR3D_FREQ", "%@", "mW/", "throttled=0x", "volt(")),
    "manifest": Target(bundle, a_manifest, JSON_WORDS),
    "onnx": Target(in_file("model.onnx", onnx_component), an_onnx, ("location", "far.bin", "../x", "/etc/passwd")),
    "tflite": Target(in_file("model.tflite", tflite_component), a_tflite, ("TFL3",)),
    "torch": Target(in_file("model.pt2", torch_component), a_torch_file, JSON_WORDS),
    "budget": Target(
        lambda data: parse_budget(data.decode("utf-8", "replace"), Source(name="b.yaml", sha256="0" * 64), "b.yaml"),
        budgets,
        ("&a", "*a", "<<:", "!!python/object", "---", "p95", "ms"),
    ),
    "judge-csv": Target(in_file("judge.csv", read_table), lambda: [CSV], ("nan", "-inf", "logprob_9", '"')),
    "report": Target(lambda data: parse_artifact(data, BenchReport, where="r.json"), a_report, JSON_WORDS),
    "inventory": Target(
        in_file("devices.yaml", Inventory),
        lambda: [b"devices:\n  pi:\n    host: pi@10.0.0.2\n    tags: [a]\n"],
        ("&a", "*a"),
    ),
    "known-hosts": Target(hosts, lambda: [KNOWN], ("@cert-authority", "@revoked", "|1|", "!")),
    "meter-csv": Target(
        in_file("meter.csv", read_meter), lambda: [b"time,power_w\n1700000000,3.5\n2026-01-01T00:00:00Z,4\n"], ("nan",)
    ),
}

# Read by the driver: a moment that no target may take longer than.
SLOW_S = 5.0


def run(target: Target, data: bytes) -> None:
    """Run a target; raise what is a finding."""
    begin = time.monotonic()
    try:
        target.parse(data)
    except ALLOWED as error:
        said = str(error)
        if "\x1b" in said or "\x00" in said:
            raise AssertionError(f"a control character in a message: {said!r}") from error
    if time.monotonic() - begin > SLOW_S:
        raise AssertionError(f"took {time.monotonic() - begin:.0f} s")
