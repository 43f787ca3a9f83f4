"""A bundle is read only when it is whole: every file there, inside the folder, unchanged; and what inspect shows."""

import json
import shutil

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from argus_edge.artifacts import sha256_file, write_artifact
from argus_edge.bench.models import resolve_model
from argus_edge.bundles import make_inputs, read_bundle, resolve_dims
from argus_edge.cli.main import cli
from argus_edge.errors import InputError
from argus_edge.inspection import all_fits
from argus_edge.schema.bundle import (
    BundleFile,
    BundleManifest,
    Component,
    Step,
    SymbolicDim,
    TensorSpec,
    UnitOfWork,
    ValueRange,
)


def put(root, path):
    return BundleFile(path=path, sha256=sha256_file(root / path), bytes=(root / path).stat().st_size)


@pytest.fixture
def bundle(tmp_path):
    """A bundle of one matrix product whose weight is external data."""
    root = tmp_path / "bundle"
    (root / "model").mkdir(parents=True)
    weight = numpy_helper.from_array(np.ones((4, 3), np.float32), "w")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 3])],
        [weight],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)], ir_version=8)
    onnx.save_model(model, root / "model/m.onnx", save_as_external_data=True, location="m.onnx.data", size_threshold=0)
    write(root)
    return root


def write(root, opset=15, ops=None, precision="fp32"):
    component = Component(
        name="model",
        role="model",
        format="onnx",
        precision=precision,
        file=put(root, "model/m.onnx"),
        external_data=[put(root, "model/m.onnx.data")],
        inputs=[
            TensorSpec(
                name="x",
                dtype="float32",
                shape=["batch", 4],
                values=ValueRange(minimum=-3, maximum=3, fill="normal"),
            )
        ],
        outputs=[TensorSpec(name="y", dtype="float32", shape=["batch", 3])],
        dims=[SymbolicDim(name="batch", minimum=1, maximum=8, typical=1)],
        params=12,
        weight_bytes=48,
        ops=ops or {"MatMul": 1},
        opset=opset,
        ir_version=8,
        converter="a test",
    )
    manifest = BundleManifest(
        name="m",
        family="clip",
        architecture="A",
        source_id="here",
        format="onnx",
        precision=precision,
        random_weights=False,
        parity_passed=True,
        components=[component],
        unit_of_work=UnitOfWork(
            task="component", description="one call", steps=[Step(component="model", phase="encode")]
        ),
    )
    write_artifact(manifest, root / "manifest.json")


def test_a_whole_bundle_is_read(bundle):
    assert read_bundle(bundle).component("model").external_data[0].path == "model/m.onnx.data"


@pytest.mark.parametrize("file", ["model/m.onnx", "model/m.onnx.data"])
def test_a_missing_changed_or_short_file(bundle, file):
    path = bundle / file
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(InputError, match="not the file that was exported"):
        read_bundle(bundle)
    path.write_bytes(whole[:-1])
    with pytest.raises(InputError, match="bytes"):
        read_bundle(bundle)
    path.unlink()
    with pytest.raises(InputError, match="lacks its file"):
        read_bundle(bundle)


def test_a_link_out_of_the_folder(bundle, tmp_path):
    outside = tmp_path / "outside.data"
    shutil.move(bundle / "model/m.onnx.data", outside)
    (bundle / "model/m.onnx.data").symlink_to(outside)
    with pytest.raises(InputError, match="leads out of the bundle"):
        read_bundle(bundle)


@pytest.mark.parametrize("path", ["../outside", "/etc/hostname", "a/../../b", "a\\b", "./a", ""])
def test_a_path_out_of_the_folder(bundle, path):
    manifest = json.loads((bundle / "manifest.json").read_text())
    manifest["components"][0]["external_data"][0]["path"] = path
    (bundle / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InputError):
        read_bundle(bundle)


def test_external_data_that_the_manifest_does_not_list(bundle):
    manifest = json.loads((bundle / "manifest.json").read_text())
    manifest["components"][0]["external_data"] = []
    (bundle / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InputError, match="does not list"):
        read_bundle(bundle)


def test_a_folder_that_is_no_bundle(tmp_path):
    with pytest.raises(InputError, match=r"manifest\.json"):
        read_bundle(tmp_path)
    with pytest.raises(InputError, match="No such bundle"):
        read_bundle(tmp_path / "nothing")


DIMS = [
    SymbolicDim(name="sequence", minimum=1, maximum=50, typical=5),
    SymbolicDim(name="past", minimum=0, maximum=49, typical=0),
    SymbolicDim(name="total", minimum=1, maximum=50, typical=5, sum_of=["past", "sequence"]),
]


@given(st.integers(1, 25), st.integers(0, 25))
def test_lengths_that_are_sums_follow(sequence, past):
    assert resolve_dims(DIMS, {"sequence": sequence, "past": past})["total"] == sequence + past


@pytest.mark.parametrize("chosen", [{"sequence": 0}, {"past": 50}, {"batch": 1}, {"sequence": 2, "total": 9}])
def test_lengths_that_do_not_hold(chosen):
    with pytest.raises(InputError):
        resolve_dims(DIMS, chosen)


@given(st.integers(0, 2**31))
def test_made_up_inputs_stay_in_their_ranges(seed):
    specs = [
        TensorSpec(
            name="ids", dtype="int64", shape=["sequence"], values=ValueRange(minimum=3, maximum=9, fill="tokens")
        ),
        TensorSpec(name="mask", dtype="int64", shape=["total"], values=ValueRange(minimum=0, maximum=1, fill="ones")),
        TensorSpec(name="x", dtype="float16", shape=[40], values=ValueRange(minimum=-1, maximum=1, fill="normal")),
        TensorSpec(
            name="at", dtype="int64", shape=[3, "sequence"], values=ValueRange(minimum=0, maximum=50, fill="positions")
        ),
    ]
    made = make_inputs(specs, {"sequence": 6, "past": 4, "total": 10}, seed=seed)
    assert made["ids"].dtype == np.int64
    assert made["ids"].min() >= 3
    assert made["ids"].max() <= 9
    assert made["mask"].tolist() == [1] * 10
    assert made["x"].dtype == np.float16
    assert np.abs(made["x"]).max() <= 1
    assert made["at"][2].tolist() == [4, 5, 6, 7, 8, 9]


def test_inspect_says_which_board_can_run_a_bundle_and_why_not(bundle):
    assert all(fit.runs for fit in all_fits(resolve_model(str(bundle))))
    write(bundle, opset=18, ops={"com.microsoft::MatMulNBits": 1, "MatMulNBits": 1}, precision="int4")
    found = {fit.profile: fit for fit in all_fits(resolve_model(str(bundle)))}
    assert found["pi5"].runs
    nano = " ".join(found["jetson-nano"].reasons)
    assert "opset 18" in nano
    assert "MatMulNBits" in nano
    assert "int4" in nano


def test_inspect_on_the_terminal_and_as_json(bundle, tmp_path):
    from click.testing import CliRunner

    shown = CliRunner().invoke(cli, ["inspect", str(bundle)], catch_exceptions=False).output
    for text in ("x float32[batch, 4] in -3 … 3 (normal)", "batch: 1 … 8", "opset 15, IR 8", "MatMul 1", "pi5"):
        assert text in shown
    document = json.loads(CliRunner().invoke(cli, ["inspect", str(bundle), "--json", "-"]).output)
    assert document["components"][0]["opset"] == 15
    assert document["manifest"]["kind"] == "bundle"
    assert {fit["profile"] for fit in document["fits"]} >= {"pi5", "jetson-nano"}


def test_inspect_takes_a_bare_file(bundle, tmp_path):
    from click.testing import CliRunner

    shown = CliRunner().invoke(cli, ["inspect", str(bundle / "model/m.onnx")], catch_exceptions=False).output
    assert "x float32[batch, 4]" in shown
    (tmp_path / "not.onnx").write_bytes(b"\x00" * 40)
    with pytest.raises(InputError):
        CliRunner().invoke(cli, ["inspect", str(tmp_path / "not.onnx")], catch_exceptions=False)
