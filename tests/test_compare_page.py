"""The report in a real browser: every section, no errors, nothing fetched. Needs Debian's chromium."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from abound.compare.page import make_page
from abound.compare.protocol import Plan
from compare_data import EVIL, find_here, make_dataset
from page_colours import contrast

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

if CHROMIUM is None:
    pytest.skip("no chromium on this machine (Debian: apt install chromium)", allow_module_level=True)
sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

SECTIONS = {
    "recommendation": "Recommendation",
    "table": "All learners, best first",
    "train-time": "Accuracy against training time",
    "rank-time": "Accuracy against ranking time",
    "tail": "Accuracy by class frequency",
    "passes": "Accuracy after each pass",
    "anytime": "Accuracy against complexity ratio",
    "confusions": "Confusion neighbours",
    "significance": "Which differences are real?",
    "doubts": "Can the figures be trusted?",
    "method": "How this was measured",
}
CHARTS = ("train-time", "rank-time", "tail", "passes", "anytime")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        found = find_here(patch, make_dataset(evil=True), Plan(("frequency", "ff", "pa", "svm"), time_limit=3600.0))
    points = [{"ratio": r, "budget": 1, "R1": r**0.5, "seconds": 0.1} for r in (0.01, 0.1, 1.0)]
    line = replace(found.lines[0], rows=[{**found.lines[0].rows[0], "anytime": points}])
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(make_page(replace(found, lines=[line, *found.lines[1:]]), "abound train ..."), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(params=[(1280, 860, "light"), (390, 844, "light"), (390, 844, "dark"), (1280, 860, "dark")], ids=str)
def page(request: Any, browser: Any, report: Path) -> Iterator[Any]:
    width, height, scheme = request.param
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    page = context.new_page()
    page.set_default_timeout(60_000)
    faults: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: faults.append(message.text))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("dialog", lambda dialog: faults.append("a dialog"))
    page.on("request", lambda sent: asked.append(sent.url))
    page.goto(report.as_uri())
    yield page
    context.close()
    assert (faults, asked) == ([], [report.as_uri()])


def test_every_section_is_shown(page: Any, tmp_path: Path) -> None:
    for ident, title in SECTIONS.items():
        part = page.locator(f"#{ident}")
        assert part.locator("h2").inner_text() == title
        assert part.is_visible() and part.bounding_box()["height"] > 40
    for ident in CHARTS:
        box = page.locator(f"#{ident} svg.chart").bounding_box()
        assert box["width"] > 250 and box["height"] > 150
    picture = tmp_path / "report.png"
    page.screenshot(path=picture, full_page=True)
    assert picture.stat().st_size > 10_000


def test_nothing_runs_over_the_edge(page: Any) -> None:
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    over = page.evaluate(
        """[...document.querySelectorAll('svg.chart text')].filter(text => {
            const a = text.getBoundingClientRect(), b = text.closest('svg').getBoundingClientRect();
            return a.left < b.left - 1 || a.right > b.right + 1 || a.top < b.top - 1 || a.bottom > b.bottom + 1;
        }).map(text => text.textContent)"""
    )
    assert over == []


def test_labels_are_text(page: Any) -> None:
    assert EVIL in page.inner_text("h1")
    assert page.evaluate("document.scripts.length") == 0


def test_drawings_have_names(page: Any) -> None:
    for drawing in page.query_selector_all("svg.chart"):
        for ident in drawing.get_attribute("aria-labelledby").split():
            assert page.evaluate(f"document.getElementById('{ident}').textContent.length > 5")


def test_ink_can_be_read(page: Any) -> None:
    pairs = [("--ink", "--ground"), ("--ink", "--mark"), ("--quiet", "--paper"), ("--quiet", "--ground")]
    for ink, ground in pairs:
        assert contrast(page, ink, ground) >= 4.5, (ink, ground)
    for i in range(10):
        assert contrast(page, f"--c{i}", "--paper") >= 3, i


def test_print_is_black_on_white(page: Any) -> None:
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
