"""Take the pictures of a report: `python docs/img/compare_pictures.py report.html`.

The report is that of `abound compare builtin:icd10 --report report.html`.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent


def main(report: str) -> None:
    """Open the report and take the pictures."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, width, height, scheme in (("desktop", 1280, 1480, "light"), ("phone", 390, 1560, "dark")):
            context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
            page = context.new_page()
            page.goto(Path(report).absolute().as_uri())
            page.screenshot(path=HERE / f"compare-{name}.png")
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1])
