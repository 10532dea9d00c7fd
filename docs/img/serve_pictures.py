"""Take the pictures of the page from a server that runs: `python docs/img/serve_pictures.py ADDRESS`.

ADDRESS is what `make serve` prints, with its token. The model is corrected on the way, so that the pictures show it:
a phrase is typed, one code is corrected, and must be first on the next try.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import expect, sync_playwright

HERE = Path(__file__).parent
LESSONS = {
    "stung by a wasp in the garden": "venomous animals",
    "allergic to peanuts": "Z91",
    "migraine with aura": "G43",
}
PHRASE = "broken left wrist after a fall from a ladder"


def main(address: str) -> None:
    """Type, correct, look, and take the pictures."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 860})
        page.goto(address)
        for text, wanted in {**LESSONS, PHRASE: "wrist frac"}.items():
            page.fill("#text", text)
            page.wait_for_selector("#classes .class")
            page.fill("#search", wanted)
            page.wait_for_selector("#found li")
            label = page.inner_text("#found li:first-child .code")
            page.locator("#search").press("Enter")
            page.wait_for_selector("#status.good", timeout=30_000)
            expect(page.locator("#classes .class").first).to_have_attribute("data-label", label)
        page.screenshot(path=HERE / "serve-desktop.png")
        page.emulate_media(color_scheme="dark")
        page.fill("#search", "wrist")
        page.wait_for_selector("#found li")
        page.screenshot(path=HERE / "serve-dark.png")
        page.emulate_media(color_scheme="light")
        page.fill("#search", "")
        page.set_viewport_size({"width": 390, "height": 844})
        page.reload()
        page.fill("#text", PHRASE)
        expect(page.locator("#classes .class").first).to_have_attribute("data-label", label)
        expect(page.locator("#shade mark").first).to_have_text("broken")
        page.screenshot(path=HERE / "serve-phone.png")
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1])
