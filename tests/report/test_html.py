"""The HTML page in a real browser: no error, no request, plots drawn, tables sorted, right on a phone."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

import pytest

from argus_edge.artifacts import write_text
from argus_edge.report.gathered import gather
from argus_edge.report.page import build_page
from tests.report.conftest import fill

pytest.importorskip("plotly")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
pytestmark = pytest.mark.slow


def render(reports: Path, budget: Path | None = None) -> str:
    from argus_edge.report.html import render_html

    gathered = gather([reports], budget=budget)
    return render_html(build_page(gathered), gathered, created=datetime(2026, 1, 2, tzinfo=timezone.utc))


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="no playwright to drive a browser with")
    if CHROMIUM is None:
        pytest.skip("no Chromium (Debian's package chromium)")
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture
def opened(browser, reports: Path, tmp_path: Path):
    """Return the page as a browser shows it, with what it logged and asked for."""
    write_text(tmp_path / "report.html", render(reports, reports.parent / "budget.yaml"))
    view = browser.new_page(viewport={"width": 1280, "height": 900})
    view.logged, view.requested = [], []
    view.on("console", lambda message: view.logged.append(message.text))
    view.on("pageerror", lambda error: view.logged.append(str(error)))
    view.on("request", lambda request: view.requested.append(request.url))
    view.goto((tmp_path / "report.html").as_uri())
    yield view
    view.close()


def test_it_opens_without_an_error_and_asks_for_nothing(opened) -> None:
    for name in ("pareto", "latency", "series", "robustness"):
        opened.locator(f"#p-{name}").scroll_into_view_if_needed()
        opened.wait_for_selector(f"figure[data-group={name}]:not([hidden]) .main-svg")
    assert opened.logged == []
    assert opened.requested == [opened.url]
    assert opened.title() == "CANNOT TELL – argus-edge"


def test_the_verdict_is_on_the_first_screen(opened) -> None:
    assert opened.locator(".word").inner_text() == "CANNOT TELL"
    box = opened.locator(".cause").bounding_box()
    assert box["y"] + box["height"] < 900


def test_a_column_sorts_by_its_numbers_with_the_keyboard(opened) -> None:
    head = opened.locator("section:has(#t-runs) th", has_text="p50").first
    head.locator("button").focus()
    opened.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"

    def shown() -> list[str]:
        return opened.locator("section:has(#t-runs) tbody tr td:nth-child(5)").all_inner_texts()

    assert shown() == ["50.0 ms", "50.0 ms", "90.0 ms", "90.0 ms"]
    opened.keyboard.press("Enter")
    assert shown() == ["90.0 ms", "90.0 ms", "50.0 ms", "50.0 ms"]


def test_choosing_a_run_draws_its_plot(opened) -> None:
    opened.locator("select[data-group=latency]").select_option(index=1)
    opened.wait_for_selector("#plot-latency-1:not([hidden]) .main-svg")
    assert opened.locator("#plot-latency-0").is_hidden()


def test_on_a_phone_only_tables_scroll_sideways(opened) -> None:
    opened.set_viewport_size({"width": 390, "height": 844})
    assert opened.evaluate("document.documentElement.scrollWidth") <= 390


def test_on_a_phone_each_budget_line_shows_how_it_came_out_and_what_was_measured(opened) -> None:
    opened.set_viewport_size({"width": 390, "height": 844})
    rows = opened.locator("section:has(#t-budget) tbody tr").all()
    assert rows
    for row in rows:
        assert row.locator("td").first.inner_text() in ("pass", "FAIL", "unknown")
        begins = [cell.bounding_box()["x"] for cell in row.locator("td").all()[:3]]
        assert max(begins) < 300


def test_it_prints_and_breaks_no_figure_in_two(opened) -> None:
    assert opened.pdf()[:4] == b"%PDF"
    opened.emulate_media(media="print")
    wraps = "[...document.querySelectorAll('td.number')].map((cell) => getComputedStyle(cell).overflowWrap)"
    assert set(opened.evaluate(wraps)) == {"break-word"}


def test_on_a_phone_the_legend_of_many_boards_and_the_names_of_percentiles_cover_nothing(
    browser, tmp_path: Path
) -> None:
    fill(tmp_path, {"a": 0.05, "b": 0.06}, devices=tuple(f"pi5-{letter}" for letter in "abcde"))
    write_text(tmp_path / "report.html", render(tmp_path))
    view = browser.new_page(viewport={"width": 390, "height": 844})
    view.goto((tmp_path / "report.html").as_uri())

    def box(selector: str) -> dict[str, float]:
        view.wait_for_selector(selector)
        return view.locator(selector).first.bounding_box()

    view.locator("#p-pareto").scroll_into_view_if_needed()
    legend, area = box("#plot-pareto .legend"), box("#plot-pareto .gridlayer")
    assert legend["y"] + legend["height"] <= area["y"] + 1
    view.locator("#p-latency").scroll_into_view_if_needed()
    view.wait_for_selector("#plot-latency-0 .annotation-text")
    tops = [each.bounding_box()["y"] for each in view.locator("#plot-latency-0 .annotation-text").all()]
    assert all(later - earlier > 5 for earlier, later in itertools.pairwise(tops))
    view.close()


@pytest.mark.parametrize("width", [390, 1280])
def test_a_very_long_name_covers_nothing_and_widens_nothing(browser, tmp_path: Path, width: int) -> None:
    fill(tmp_path, {"x" * 200: 0.05, "y" * 200: 0.06}, devices=("pi5",))
    write_text(tmp_path / "report.html", render(tmp_path))
    view = browser.new_page(viewport={"width": width, "height": 900})
    view.goto((tmp_path / "report.html").as_uri())
    wider = "[...document.querySelectorAll('td, li, h2, p')].filter((each) => each.scrollWidth > each.clientWidth + 1)"
    assert view.evaluate(f"{wider}.map((each) => each.textContent.slice(0, 40))") == []
    assert view.evaluate("document.documentElement.scrollWidth") <= width
    view.close()


def test_fifty_runs_stay_below_eight_megabytes(tmp_path: Path) -> None:
    fill(tmp_path, {f"model-{index}": 0.05 for index in range(25)}, calls=2000)
    assert len(render(tmp_path).encode()) <= 8_000_000
