"""Model families and file formats by name: name -> "module:Class"."""

from __future__ import annotations

from argus_edge.registry import Registry

# By the configuration's model_type.
FAMILIES = Registry(
    "model family",
    {
        "clip": "argus_edge.exporters.clip:ClipFamily",
        "blip": "argus_edge.exporters.blip:BlipFamily",
        "lxmert": "argus_edge.exporters.lxmert:LxmertFamily",
        "gemma3": "argus_edge.exporters.gemma3:Gemma3Family",
        "qwen2_5_vl": "argus_edge.exporters.qwen2_5_vl:Qwen25VlFamily",
    },
)

FORMATS = Registry(
    "format",
    {
        "onnx": "argus_edge.exporters.onnx_format:OnnxFormat",
        "tflite": "argus_edge.exporters.tflite_format:TfliteFormat",
        "torch": "argus_edge.exporters.torch_format:TorchFormat",
    },
)
