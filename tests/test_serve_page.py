"""The page in a real browser: type, see, correct, see again. Needs Debian's chromium."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from page_colours import contrast
from serve_data import TOKEN, Server, make_model, make_vector_model

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

if CHROMIUM is None:
    pytest.skip("no chromium on this machine (Debian: apt install chromium)", allow_module_level=True)
sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
sync_api.expect.set_options(timeout=60_000)  # for machines that do something else as well


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("page")
    with Server(make_model(folder / "drinks"), make_vector_model(folder / "vectors")) as server:
        yield server


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(params=[(1280, 860), (390, 844)], ids=["desktop", "phone"])
def page(request: Any, browser: Any, server: Server) -> Iterator[Any]:
    width, height = request.param
    context = browser.new_context(viewport={"width": width, "height": height})
    page = context.new_page()
    page.set_default_timeout(60_000)
    faults: list[str] = []
    foreign: list[str] = []
    page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("request", lambda sent: foreign.append(sent.url) if not sent.url.startswith(server.base) else None)
    page.goto(f"{server.base}/#token={TOKEN}")
    yield page
    context.close()
    # A refused token is an error to the browser, but not to us.
    assert ([fault for fault in faults if "401 (Unauthorized)" not in fault], foreign) == ([], [])


def labels(page: Any) -> list[str]:
    return [item.get_attribute("data-label") for item in page.query_selector_all("#classes .class")]


def first(page: Any, label: str) -> None:
    sync_api.expect(page.locator("#classes .class").first).to_have_attribute("data-label", label)


def test_type_see_correct_see_again(page: Any, request: Any) -> None:
    phrase = f"green leaf drink {request.node.callspec.id}"
    page.locator("#text").press_sequentially(phrase)
    sync_api.expect(page.locator("#classes .class.active .words")).to_contain_text("leaf")
    assert "#" not in page.url
    before = labels(page)
    assert len(before) == 5 and before[0] in ("tea", "water")
    marks = [mark.inner_text() for mark in page.query_selector_all("#shade mark")]
    assert "green" in marks and "leaf" in marks
    assert "drinks" in page.inner_text("#classes .class .path").lower()
    page.fill("#search", "water")
    page.wait_for_selector("#found li")
    page.locator("#search").press("Enter")
    page.wait_for_selector("#status.good")
    first(page, "water")
    assert "is first now" in page.inner_text("#status")
    page.reload()
    page.fill("#text", phrase)
    first(page, "water")
    assert "correction" in page.inner_text("#learning")


def test_keyboard_alone(page: Any, request: Any) -> None:
    page.fill("#text", f"bean roast {request.node.callspec.id}")
    page.wait_for_selector("#classes .class")
    page.wait_for_load_state("networkidle")
    second = labels(page)[1]
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    focused = page.evaluate("document.activeElement.dataset.label")
    assert focused == second
    assert page.locator("#classes .class.active").get_attribute("data-label") == second
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "search"
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "text"
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("#status.good")
    first(page, second)


def test_new_class_by_hand(page: Any, request: Any) -> None:
    name = f"mate-{request.node.callspec.id}"
    page.fill("#text", f"gourd {name}")
    page.wait_for_selector("#classes .class")
    page.fill("#search", name)
    page.locator("#found li", has_text="a new class").click()
    page.wait_for_selector("#status.good")
    first(page, name)


def test_nothing_runs_over_the_edge(page: Any) -> None:
    page.fill("#text", "green leaf " + "verylongwordwithoutanybreak" * 8)
    page.wait_for_selector("#classes .class")
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    heights = page.evaluate(
        "[document.getElementById('shade').scrollHeight, document.getElementById('text').scrollHeight]"
    )
    assert abs(heights[0] - heights[1]) < 40


def test_a_wrong_token_is_asked_for_again(page: Any, server: Server) -> None:
    page.goto(f"{server.base}/")
    page.evaluate("sessionStorage.setItem('token', 'wrong')")
    page.reload()
    page.fill("#text", "hop malt")
    page.wait_for_selector("#classes button")
    with page.expect_response(lambda answer: answer.url.endswith("/learn")) as refused:
        page.locator("#classes button").first.click()
    assert refused.value.status == 401
    page.wait_for_selector("#token-form:not([hidden])")
    page.fill("#token", TOKEN)
    page.locator("#token").press("Enter")
    page.wait_for_selector("#classes button")


def test_models_of_vectors(page: Any) -> None:
    page.select_option("#model", "vectors")
    page.fill("#text", "3:0.9 1:0.2")
    page.wait_for_selector("#classes .class")
    first(page, "3")


def test_a_late_word_of_the_model_before_changes_nothing(page: Any, server: Server) -> None:
    held: list[Any] = []
    page.route(f"{server.base}/v1/models/drinks", lambda route: held.append(route))
    page.reload()
    page.wait_for_selector("#model option:nth-child(2)", state="attached")
    page.select_option("#model", "vectors")
    page.fill("#text", "3:0.9 1:0.2")
    first(page, "3")
    with page.expect_response(f"{server.base}/v1/models/drinks"):
        for route in held:
            route.continue_()
    page.fill("#text", "1:0.9 3:0.2")
    first(page, "1")


def test_dark_and_light_are_readable(browser: Any, server: Server) -> None:
    for scheme in ("light", "dark"):
        context = browser.new_context(color_scheme=scheme)
        page = context.new_page()
        page.goto(f"{server.base}/")
        page.fill("#text", "green leaf hop")
        page.wait_for_selector("#classes .class")
        for ink, ground in (
            ("--ink", "--ground"),
            ("--quiet", "--paper"),
            ("--quiet", "--for-1"),
            ("--ink", "--for-3"),
            ("--quiet", "--against"),
            ("--accent", "--paper"),
            ("--learned", "--ground"),
        ):
            assert contrast(page, ink, ground) >= 4.5, (scheme, ink, ground)
        context.close()
