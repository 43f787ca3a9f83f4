"""Model files damaged at random: each is read or refused with an error for a person, never with a traceback."""

import random
import zipfile

import pytest

from argus_edge.bench.cost import component_cost
from argus_edge.bench.inputs import prepare_inputs
from argus_edge.bench.models import resolve_model
from argus_edge.errors import ArgusError
from tests.bench.test_models import LIGHT, archive, linear, tiny_tflite

PROGRAM = (
    b'{"graph_module": {"graph": {"tensor_values": {"x": {"dtype": 7, "sizes": [{"as_int": 3}]}}}, "signature": '
    b'{"input_specs": [{"user_input": {"arg": {"as_tensor": {"name": "x"}}}}]}}}'
)
WHOLE = {
    "squeezenet.onnx": (LIGHT / "light_squeezenet.onnx").read_bytes(),
    "linear.onnx": linear().SerializeToString(),
    "tiny.tflite": tiny_tflite(),
    "program.pt2": archive({"m/models/model.json": PROGRAM}),
    "script.pt": archive({"m/data.pkl": b"x", "m/constants.pkl": b"x", "m/code/__torch__.py": b"x"}),
}
MUTANTS = 150


def damaged(whole, rng):
    data = bytearray(whole)
    for _ in range(rng.choice([1, 1, 2, 5, 50])):
        place = rng.randrange(len(data) if rng.random() < 0.5 else min(400, len(data)))
        kind = rng.random()
        if kind < 0.6:
            data[place] = rng.randrange(256)
        elif kind < 0.8 and len(data) > 40:
            del data[place : place + rng.randrange(1, 20)]
        else:
            data[place:place] = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 9)))
    return bytes(data)


@pytest.mark.parametrize("name", WHOLE)
def test_damage_is_survived(tmp_path, name):
    rng = random.Random(name)
    path = tmp_path / name
    errors = []
    for _ in range(MUTANTS):
        path.write_bytes(damaged(WHOLE[name], rng))
        try:
            for component in resolve_model(str(path)).components:
                component_cost(component, prepare_inputs(component).shapes)
        except ArgusError as error:
            errors.append(error)
    assert errors
    assert {error.exit_code for error in errors} == {2}


def test_names_that_are_no_text(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(linear().SerializeToString().replace(b"MatMul", b"Mat\xfful"))
    with pytest.raises(ArgusError, match="damaged"):
        resolve_model(str(path))


def test_an_encrypted_archive(tmp_path):
    path = tmp_path / "m.pt2"
    raw = bytearray(archive({"m/models/model.json": PROGRAM}))
    # Bit 0 of the flags, in the local header and in the directory.
    raw[6] |= 1
    raw[raw.rfind(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(bytes(raw))
    assert zipfile.is_zipfile(path)
    with pytest.raises(ArgusError):
        resolve_model(str(path))
