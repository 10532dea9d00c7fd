"""How well the ink of a page can be read."""

from __future__ import annotations

from typing import Any


def contrast(page: Any, ink: str, ground: str) -> float:
    """WCAG's ratio between two colours of the page."""

    def luminance(name: str) -> float:
        colour = page.evaluate(f"getComputedStyle(document.documentElement).getPropertyValue('{name}')").strip()
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        red, green, blue = (p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
        return float(0.2126 * red + 0.7152 * green + 0.0722 * blue)

    high, low = sorted((luminance(ink), luminance(ground)), reverse=True)
    return (high + 0.05) / (low + 0.05)
