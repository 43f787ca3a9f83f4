"""Reading a torch file (TorchScript or an exported program) without torch, which the base install does not bring."""

from __future__ import annotations

import json
import zipfile
import zlib
from pathlib import Path
from typing import Any

from argus_edge.artifacts import sha256_file
from argus_edge.bench.model_types import BenchComponent, InputSpec, ModelFile
from argus_edge.errors import InputError

# torch's ScalarType in an exported program's model.json (torch/_export/serde/schema.py).
DTYPES = {
    1: "uint8",
    2: "int8",
    3: "int16",
    4: "int32",
    5: "int64",
    6: "float16",
    7: "float32",
    8: "float64",
    12: "bool",
}
MAX_PROGRAM_BYTES = 256 << 20


def torch_component(path: Path, name: str | None = None) -> BenchComponent:
    """Read a torch file as a component to bench.

    Raises
    ------
    InputError
        Not a torch archive, truncated, or a checkpoint of weights alone.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.namelist()
            if any(
                member.endswith("/models/model.json") or member == "serialized_exported_program.json"
                for member in members
            ):
                form, inputs = "exported", _program_inputs(archive, members, path)
            elif any("/code/" in member for member in members) and any(
                member.endswith("/constants.pkl") for member in members
            ):
                form, inputs = "torchscript", None
            else:
                raise InputError(
                    "This torch file holds weights without a program.",
                    where=str(path),
                    next_step="save the model with torch.jit.save or torch.export.save, or bench an exported bundle",
                )
    # A damaged archive shows itself in all of these ways, an encrypted one as a RuntimeError.
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, KeyError, RuntimeError) as error:
        raise InputError(
            "Not a TorchScript file or exported program, or a truncated one.",
            where=str(path),
            next_step="save it with torch.jit.save or torch.export.save, and copy it again",
        ) from error
    return BenchComponent(
        name=name or path.name.split(".")[0],
        format="exported" if form == "exported" else "torchscript",
        model=ModelFile(path=path, name=path.name, sha256=sha256_file(path), bytes=path.stat().st_size),
        inputs=inputs,
    )


def _program_inputs(archive: zipfile.ZipFile, members: list[str], path: Path) -> tuple[InputSpec, ...] | None:
    """Return the inputs that an exported program's signature names; None where its layout is an older one."""
    member = next((member for member in members if member.endswith("/models/model.json")), None)
    if member is None:
        return None
    if archive.getinfo(member).file_size > MAX_PROGRAM_BYTES:
        raise InputError("The exported program is too large to read.", where=str(path))
    try:
        module = json.loads(archive.read(member))["graph_module"]
        values = module["graph"]["tensor_values"]
        specs = []
        for entry in module["signature"]["input_specs"]:
            if "user_input" not in entry:
                continue
            name = entry["user_input"]["arg"]["as_tensor"]["name"]
            value = values[name]
            specs.append(InputSpec(name, DTYPES[value["dtype"]], tuple(_length(size) for size in value["sizes"])))
    except (KeyError, TypeError, ValueError, RecursionError):
        # A program with inputs other than tensors, or of a later layout: the caller must give the inputs.
        return None
    return tuple(specs)


def _length(size: dict[str, Any]) -> int | str:
    if "as_int" in size:
        return int(size["as_int"])
    expression = str(size["as_expr"]["expr_str"])
    return expression.split("'")[1] if expression.startswith("Symbol('") else "?"
