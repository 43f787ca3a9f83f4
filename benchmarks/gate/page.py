"""The HTML page of 50 runs: how large it is, and how long a headless Chromium takes to draw it.

    python benchmarks/gate/page.py [REPEATS]

Bar: 8 MB, and 3 s from the request until every plot on the page is drawn (scrolled to, since plots are drawn when they
come into view). Writes page.json beside this file.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import statistics
import sys
import tempfile
import time
from datetime import datetime, timezone
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from argus_edge.artifacts import write_text
from argus_edge.report.gathered import gather
from argus_edge.report.html import render_html
from argus_edge.report.page import build_page
from tests.report.conftest import BUDGET, fill

MODELS, DEVICES, CALLS = 10, ("pi5-a", "pi5-b", "pi5-c", "nano", "orin"), 20_000
DRAWN = """() => [...document.querySelectorAll('figure')].filter(f => !f.hidden)
  .every(f => { f.scrollIntoView(); return f.querySelector('.main-svg') })"""


def main() -> None:
    from playwright.sync_api import sync_playwright

    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    browser_path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        reports = Path(folder, "reports")
        reports.mkdir()
        fill(reports, {f"model-{n}": 0.04 + 0.01 * n for n in range(MODELS)}, DEVICES, CALLS)
        Path(folder, "budget.yaml").write_text(BUDGET)
        begun = time.perf_counter()
        gathered = gather([reports], budget=Path(folder, "budget.yaml"))
        html = render_html(build_page(gathered), gathered, created=datetime.now(timezone.utc))
        rendered = time.perf_counter() - begun
        write_text(Path(folder, "page.html"), html)
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox", "--disable-gpu"])
        loaded, drawn = [], []
        for _ in range(repeats):
            view = browser.new_page(viewport={"width": 1280, "height": 900})
            begun = time.perf_counter()
            view.goto(Path(folder, "page.html").as_uri(), wait_until="load")
            loaded.append(time.perf_counter() - begun)
            view.wait_for_function(DRAWN, timeout=120_000)
            drawn.append(time.perf_counter() - begun)
            view.close()
        document = {
            "runs": len(gathered.benches),
            "calls_a_run": CALLS,
            "page_bytes": len(html.encode()),
            "render_s": rendered,
            "loaded_s": statistics.median(loaded),
            "drawn_s": statistics.median(drawn),
            "browser": browser.version,
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        }
        browser.close()
    Path(__file__).with_suffix(".json").write_text(json.dumps(document, indent=1) + "\n")
    print(json.dumps(document, indent=1))


if __name__ == "__main__":
    main()
