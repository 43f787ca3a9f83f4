"""CLIP ViT-B/32 at full size: our conversion against a bare torch.onnx.export, our files against Optimum's, int8.

    python benchmarks/export/clip.py prepare WORK                        # random weights, saved as a model folder
    python benchmarks/export/clip.py convert WORK --pairs 3 --json F     # time and peak memory, processes interleaved
    OPTIMUM_PYTHON benchmarks/export/clip.py optimum WORK                # in an environment with optimum-onnx
    python benchmarks/export/clip.py latency WORK --json F               # p50 of fp32, Optimum's and int8, interleaved

Both conversions start from the same folder in a process of their own and write the same two towers.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

LENGTH = 77


def prepare(work):
    import torch
    from transformers import CLIPModel

    from argus_edge.exporters.source import resolve

    torch.manual_seed(0)
    model = CLIPModel(resolve("clip-vit-b32", random_weights=True).config)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.normal_(0, 0.02)
    model.save_pretrained(work / "model")


def bare(work):
    """What a person would write: load, wrap, export both towers."""
    import torch
    from transformers import CLIPModel

    class Image(torch.nn.Module):
        def __init__(self, model):
            super().__init__()
            self.tower, self.projection = model.vision_model, model.visual_projection

        def forward(self, pixel_values):
            return torch.nn.functional.normalize(self.projection(self.tower(pixel_values).pooler_output), dim=-1)

    class Text(torch.nn.Module):
        def __init__(self, model):
            super().__init__()
            self.tower, self.projection = model.text_model, model.text_projection

        def forward(self, input_ids, attention_mask):
            pooled = self.tower(input_ids=input_ids, attention_mask=attention_mask).pooler_output
            return torch.nn.functional.normalize(self.projection(pooled), dim=-1)

    model = CLIPModel.from_pretrained(work / "model", attn_implementation="eager").eval()
    out = work / "bare"
    out.mkdir(exist_ok=True)
    ids = torch.randint(3, 49000, (2, 20))
    ids[:, -1] = 49407
    torch.onnx.export(
        Image(model).eval(),
        (torch.zeros(2, 3, 224, 224),),
        str(out / "image.onnx"),
        dynamo=True,
        opset_version=18,
        input_names=["pixel_values"],
        output_names=["image_embeds"],
        dynamic_shapes={"pixel_values": {0: "batch"}},
        external_data=False,
        verbose=False,
    )
    torch.onnx.export(
        Text(model).eval(),
        (ids, torch.ones_like(ids)),
        str(out / "text.onnx"),
        dynamo=True,
        opset_version=18,
        input_names=["input_ids", "attention_mask"],
        output_names=["text_embeds"],
        dynamic_shapes={name: {0: "batch", 1: "sequence"} for name in ("input_ids", "attention_mask")},
        external_data=False,
        verbose=False,
    )


def ours(work):
    from argus_edge.exporters.export import ExportOptions, export_model

    export_model(
        ExportOptions(model=str(work / "model"), out=work / "ours-unchecked", opset=18, force=True, check=False)
    )


def measured(step, work):
    """Seconds of processor time and of the clock, and the peak resident set, of a step in a process of its own."""
    start = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, __file__, step, str(work)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    peak = 0
    while process.poll() is None:
        try:
            text = Path(f"/proc/{process.pid}/status").read_text()
            peak = max([peak, *(int(line.split()[1]) * 1024 for line in text.splitlines() if "VmHWM" in line)])
        except OSError:
            break
        time.sleep(0.05)
    process.wait()
    if process.returncode:
        raise SystemExit(f"{step} failed")
    return {"seconds": time.monotonic() - start, "peak_bytes": peak}


def convert(work, pairs):
    runs = {"bare": [], "ours": []}
    for pair in range(pairs):
        for step in ("bare", "ours") if pair % 2 == 0 else ("ours", "bare"):
            before = os.times()
            run = measured(step, work)
            after = os.times()
            run["cpu_seconds"] = (after.children_user - before.children_user) + (
                after.children_system - before.children_system
            )
            runs[step].append(run)
    median = {
        step: {key: statistics.median(run[key] for run in found) for key in found[0]} for step, found in runs.items()
    }
    ratios = {key: round(median["ours"][key] / median["bare"][key], 3) for key in median["bare"]}
    return {"median": median, "ratio": ratios, "runs": runs}


def optimum(work):
    from optimum.exporters.onnx import main_export

    main_export(
        str(work / "model"),
        output=work / "optimum",
        task="zero-shot-image-classification",
        local_files_only=True,
        opset=18,
        do_validation=False,
    )


def latency(work, rounds, threads):
    import numpy as np
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    rng = np.random.default_rng(0)
    ids = rng.integers(3, 49000, (1, LENGTH))
    ids[0, -1] = 49407
    inputs = {
        "pixel_values": rng.standard_normal((1, 3, 224, 224)).astype(np.float32),
        "input_ids": ids,
        "attention_mask": np.ones((1, LENGTH), np.int64),
    }

    def load(*paths):
        sessions = [onnxruntime.InferenceSession(str(path), options) for path in paths]
        feeds = [{entry.name: inputs[entry.name] for entry in session.get_inputs()} for session in sessions]

        def run():
            # Processor time leaves out what a busy machine adds to the clock's.
            start, start_cpu = time.perf_counter(), time.process_time()
            for session, feed in zip(sessions, feeds, strict=True):
                session.run(None, feed)
            return time.perf_counter() - start, time.process_time() - start_cpu

        return run

    found = {}
    for name in ("fp32", "int8"):
        folder = work / f"clip-{name}"
        if folder.exists():
            found[name] = load(folder / "image" / "image.onnx", folder / "text" / "text.onnx")
    if (work / "optimum" / "model.onnx").exists():
        found["optimum"] = load(work / "optimum" / "model.onnx")
    times = {name: [] for name in found}
    for run in found.values():
        for _ in range(5):
            run()
    for index in range(rounds):
        order = list(found) if index % 2 == 0 else list(reversed(found))
        for name in order:
            times[name].append(found[name]())
    result = {"rounds": rounds, "threads": threads, "unit": "one image plus one text of 77 tokens"}
    for index, clock in enumerate(("wall", "cpu")):
        p50 = {name: statistics.median(pair[index] for pair in values) * 1e3 for name, values in times.items()}
        result[f"p50_{clock}_ms"] = {name: round(value, 3) for name, value in p50.items()}
        result[f"fp32_over_{clock}"] = {name: round(p50["fp32"] / p50[name], 3) for name in p50 if name != "fp32"}
    sizes = {
        name: sum(path.stat().st_size for path in (work / f"clip-{name}").glob("*/*.onnx*"))
        for name in ("fp32", "int8")
    }
    if sizes["int8"]:
        result["int8_size_ratio"] = round(sizes["int8"] / sizes["fp32"], 4)
        manifest = json.loads((work / "clip-int8" / "manifest.json").read_text())
        result["int8_lowest_cosine"] = {
            part["name"]: min(figure["cosine"] for figure in part["parity"]["figures"])
            for part in manifest["components"]
        }
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=["prepare", "bare", "ours", "convert", "optimum", "latency"])
    parser.add_argument("work", type=Path)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    chosen.work.mkdir(parents=True, exist_ok=True)
    steps = {
        "convert": lambda: convert(chosen.work, chosen.pairs),
        "latency": lambda: latency(chosen.work, chosen.rounds, chosen.threads),
    }
    result = steps.get(chosen.step, lambda: globals()[chosen.step](chosen.work))()
    if result:
        result["machine"] = {
            "processor": platform.machine(),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
        }
        text = json.dumps(result, indent=1)
        print(text)
        if chosen.json:
            chosen.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
