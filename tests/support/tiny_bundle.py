"""Bundles made by hand from a few ONNX operators: they need no torch, and ONNX Runtime 1.10 reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from argus_edge.artifacts import sha256_file, write_artifact
from argus_edge.schema.bundle import (
    BundleFile,
    BundleManifest,
    Component,
    Generation,
    ImagePreprocess,
    KvCache,
    Step,
    SymbolicDim,
    TensorSpec,
    UnitOfWork,
    ValueRange,
)

WIDTH, VOCABULARY, IMAGE_TOKENS, IMAGE_TOKEN, CONTEXT = 8, 32, 4, 31, 128
PAST, PRESENT = "past.{layer}.%s", "present.{layer}.%s"


def _weights(name: str, *shape: int, seed: int = 0) -> onnx.TensorProto:
    return numpy_helper.from_array(np.random.default_rng(seed).standard_normal(shape).astype(np.float32), name)


def _constant(name: str, values: Any, dtype: type = np.int64) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(values, dtype), name)


def _save(path: Path, nodes: list, inputs: list, outputs: list, constants: list) -> None:
    graph = helper.make_graph(nodes, path.stem, inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 7
    onnx.save(model, str(path))


def _float(name: str, *shape: int | str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def _whole(name: str, *shape: int | str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.INT64, shape)


def _node(op: str, inputs: list[str], output: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op, inputs, [output], **attributes)


def _image_nodes() -> tuple[list, list]:
    """Pixels of shape (batch, 3, 8, 8) to ``x`` of shape (batch, 192)."""
    return [_node("Reshape", ["pixel_values", "flat"], "x")], [_constant("flat", [-1, 192])]


def _image_tower(path: Path) -> None:
    nodes, constants = _image_nodes()
    nodes.append(_node("MatMul", ["x", "w"], "image_embeds"))
    _save(
        path,
        nodes,
        [_float("pixel_values", "batch", 3, 8, 8)],
        [_float("image_embeds", "batch", WIDTH)],
        [*constants, _weights("w", 192, WIDTH)],
    )


def _text_tower(path: Path) -> None:
    nodes = [
        _node("Gather", ["table", "input_ids"], "e"),
        _node("ReduceMean", ["e"], "text_embeds", axes=[1], keepdims=0),
    ]
    _save(
        path,
        nodes,
        [_whole("input_ids", "batch", "sequence")],
        [_float("text_embeds", "batch", WIDTH)],
        [_weights("table", VOCABULARY, WIDTH)],
    )


def _vision(path: Path) -> None:
    nodes, constants = _image_nodes()
    nodes += [_node("MatMul", ["x", "w"], "h"), _node("Reshape", ["h", "rows"], "image_features")]
    _save(
        path,
        nodes,
        [_float("pixel_values", 1, 3, 8, 8)],
        [_float("image_features", 1, IMAGE_TOKENS, WIDTH)],
        [*constants, _weights("w", 192, IMAGE_TOKENS * WIDTH), _constant("rows", [1, IMAGE_TOKENS, WIDTH])],
    )


def _decoder(path: Path) -> None:
    """The mean of all embeddings so far, and of the image's features where there are any, decides the next token."""
    nodes = [
        _node("Gather", ["table", "input_ids"], "e"),
        _node("ReduceSum", ["image_features", "axis0"], "f", keepdims=1),
        _node("Add", ["e", "f"], "seen"),
        _node("Unsqueeze", ["seen", "axis1"], "new"),
        _node("Concat", ["past.0.key", "new"], "present.0.key", axis=2),
        _node("Concat", ["past.0.value", "new"], "present.0.value", axis=2),
        _node("ReduceSum", ["present.0.value", "axis2"], "s", keepdims=0),
        _node("ReduceSum", ["attention_mask", "axis1"], "n", keepdims=1),
        _node("Cast", ["n"], "count", to=TensorProto.FLOAT),
        _node("Unsqueeze", ["count", "axis1"], "count3"),
        _node("Div", ["s", "count3"], "mean"),
        _node("MatMul", ["mean", "w"], "logits"),
    ]
    cache = [f"{side}.0.{kind}" for side in ("past", "present") for kind in ("key", "value")]
    _save(
        path,
        nodes,
        [
            _whole("input_ids", 1, "sequence"),
            _whole("attention_mask", 1, "total"),
            _float("image_features", "image_tokens", WIDTH),
            *(_float(name, 1, 1, "past", WIDTH) for name in cache[:2]),
        ],
        [_float("logits", 1, 1, VOCABULARY), *(_float(name, 1, 1, "total", WIDTH) for name in cache[2:])],
        [
            _weights("table", VOCABULARY, WIDTH, seed=1),
            _weights("w", WIDTH, VOCABULARY, seed=2),
            *(_constant(f"axis{axis}", [axis]) for axis in range(3)),
        ],
    )


def _component(folder: Path, name: str, role: str, inputs: list, outputs: list, dims: list = ()) -> Component:  # type: ignore[assignment]
    path = folder / f"{name}.onnx"
    file = BundleFile(path=path.name, sha256=sha256_file(path), bytes=path.stat().st_size)
    return Component(
        name=name,
        role=role,  # type: ignore[arg-type]
        format="onnx",
        precision="fp32",
        file=file,
        inputs=inputs,
        outputs=outputs,
        dims=list(dims),
        params=0,
        weight_bytes=file.bytes,
        opset=13,
        ir_version=7,
        converter="by hand",
    )


def _pixels(*shape: int | str) -> TensorSpec:
    values = ValueRange(minimum=-2, maximum=2, fill="normal")
    return TensorSpec(name="pixel_values", dtype="float32", shape=list(shape), values=values)


def _ids(*shape: int | str) -> TensorSpec:
    values = ValueRange(minimum=0, maximum=VOCABULARY - 2, fill="tokens")
    return TensorSpec(name="input_ids", dtype="int64", shape=list(shape), values=values)


def _tensor(name: str, *shape: int | str, dtype: str = "float32") -> TensorSpec:
    return TensorSpec(name=name, dtype=dtype, shape=list(shape))


def _write(folder: Path, **fields: Any) -> Path:
    manifest = BundleManifest(
        name=folder.name,
        architecture="ByHand",
        source_id="by-hand",
        format="onnx",
        precision="fp32",
        random_weights=True,
        parity_passed=True,
        preprocess=ImagePreprocess(
            height=8,
            width=8,
            resize="stretch",
            resample="bilinear",
            rescale=1 / 255,
            mean=[0.5] * 3,
            std=[0.5] * 3,
            layout="NCHW",
        ),
        **fields,
    )
    write_artifact(manifest, folder / "manifest.json")
    return folder


def retrieval_bundle(folder: Path) -> Path:
    """Make a bundle of an image tower and a text tower."""
    folder.mkdir(parents=True)
    _image_tower(folder / "image.onnx")
    _text_tower(folder / "text.onnx")
    batch = SymbolicDim(name="batch", minimum=1, maximum=64, typical=1)
    sequence = SymbolicDim(name="sequence", minimum=1, maximum=16, typical=12)
    embeds = [_tensor(name, "batch", WIDTH) for name in ("image_embeds", "text_embeds")]
    return _write(
        folder,
        family="clip",
        components=[
            _component(folder, "image", "image-encoder", [_pixels("batch", 3, 8, 8)], embeds[:1], [batch]),
            _component(folder, "text", "text-encoder", [_ids("batch", "sequence")], embeds[1:], [batch, sequence]),
        ],
        unit_of_work=UnitOfWork(
            task="retrieval",
            description="one image plus one text embedded, batch 1",
            steps=[Step(component="image", phase="encode"), Step(component="text", phase="encode")],
        ),
    )


def answering_bundle(folder: Path) -> Path:
    """Make a bundle of a vision tower and a decoder with its past."""
    folder.mkdir(parents=True)
    _vision(folder / "vision.onnx")
    _decoder(folder / "decoder.onnx")
    dims = [
        SymbolicDim(name="sequence", minimum=1, maximum=CONTEXT, typical=12),
        SymbolicDim(name="past", minimum=0, maximum=CONTEXT - 1, typical=0),
        SymbolicDim(name="total", minimum=1, maximum=CONTEXT, typical=12, sum_of=["past", "sequence"]),
        SymbolicDim(name="image_tokens", minimum=0, maximum=CONTEXT, typical=IMAGE_TOKENS),
    ]
    kinds = ("key", "value")
    kv = KvCache(
        layers=1,
        kv_heads=1,
        head_dim=WIDTH,
        layout=["batch", "kv_heads", "past", "head_dim"],
        dtype="float32",
        past_key=PAST % "key",
        past_value=PAST % "value",
        present_key=PRESENT % "key",
        present_value=PRESENT % "value",
        bytes_per_token=2 * WIDTH * 4,
    )
    decoder = _component(
        folder,
        "decoder",
        "decoder",
        [
            _ids(1, "sequence"),
            TensorSpec(
                name="attention_mask",
                dtype="int64",
                shape=[1, "total"],
                values=ValueRange(minimum=0, maximum=1, fill="ones"),
            ),
            _tensor("image_features", "image_tokens", WIDTH),
            *(_tensor(f"past.0.{kind}", 1, 1, "past", WIDTH) for kind in kinds),
        ],
        [_tensor("logits", 1, 1, VOCABULARY), *(_tensor(f"present.0.{kind}", 1, 1, "total", WIDTH) for kind in kinds)],
        dims,
    )
    features = [_tensor("image_features", 1, IMAGE_TOKENS, WIDTH)]
    return _write(
        folder,
        family="gemma3",
        components=[_component(folder, "vision", "vision", [_pixels(1, 3, 8, 8)], features), decoder],
        generation=Generation(
            decoder="decoder",
            kv=kv,
            attention_mask="attention_mask",
            image_features="image_features",
            image_features_dim="image_tokens",
            vocab_size=VOCABULARY,
            image_token_id=IMAGE_TOKEN,
            image_tokens=IMAGE_TOKENS,
            context_length=CONTEXT,
        ),
        unit_of_work=UnitOfWork(
            task="answering",
            description="one image seen, one prompt read, output tokens written (32 unless set); batch 1",
            steps=[
                Step(component="vision", phase="encode"),
                Step(component="decoder", phase="prefill", bindings={"image_features": "vision.image_features"}),
                Step(component="decoder", phase="decode"),
            ],
        ),
    )
