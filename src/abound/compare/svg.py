"""Charts as SVG inside a page: points, curves and bars, with a title and a description for those who do not see them.

Colours and type come from the page's style sheet, so that charts follow it into dark mode and print.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

WIDTH, HEIGHT = 440, 300
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 12, 48
COLOURS = 10
"""Colours of the style sheet, c0 to c9; further series begin again, with another mark."""

FAR_BELOW = 0.6
"""Points below this part of the highest are drawn at the lower edge."""

LETTER, LINE = 9.0, 17
"""About how wide and high a letter of a label is."""

LINE_STEPS = 40
"""Places of a line that names keep clear of."""

Point = tuple[float, float]


@dataclass(frozen=True)
class Axis:
    """A scale from values to places on the page.

    Parameters
    ----------
    low, high : float
        Ends of the scale.
    log : bool
        Equal distances for equal ratios.
    begin, end : float
        Where the ends lie on the page.
    """

    low: float
    high: float
    log: bool
    begin: float
    end: float

    def place(self, value: float) -> float:
        """Return where a value lies on the page.

        Parameters
        ----------
        value : float
            A value; beyond the ends it is moved to them.

        Returns
        -------
        float
            Its place.
        """
        low, high, value = (self._scaled(v) for v in (self.low, self.high, min(max(value, self.low), self.high)))
        return self.begin + (self.end - self.begin) * ((value - low) / (high - low) if high > low else 0.5)

    def ticks(self) -> list[float]:
        """Return round values within the scale."""
        if self.log:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            found = [10.0**power for power in powers]
            if len(found) <= 3:
                found = [factor * 10.0**power for power in powers for factor in (1, 2, 5)]
            return [tick for tick in found if self.low * 0.999 <= tick <= self.high * 1.001]
        step = _round_step((self.high - self.low) / 5)
        first = math.ceil(self.low / step - 1e-9)
        return [step * i for i in range(first, math.floor(self.high / step + 1e-9) + 1)]

    def _scaled(self, value: float) -> float:
        return math.log10(value) if self.log else value


def scatter(
    ident: str,
    title: str,
    description: str,
    points: Sequence[tuple[str, float, float]],
    front: Sequence[int],
    labels: tuple[str, str],
) -> str:
    """Draw named points, what is cheap on a logarithmic scale to the left, and a line through those nobody beats.

    Parameters
    ----------
    ident : str
        Of the drawing, for references within the page.
    title, description : str
        For those who do not see it.
    points : sequence of (name, x, y)
        x above 0.
    front : sequence of int
        Points of the line, by place.
    labels : (str, str)
        Of the two axes.

    Returns
    -------
    str
        An ``svg`` element.
    """
    xs = [max(x, 1e-6) for _, x, _ in points]
    x_axis = Axis(min(xs) / 1.6, max(xs) * 2.5, True, LEFT, WIDTH - RIGHT)
    best = max(y for _, _, y in points)
    # A baseline far below would leave no room between the others: it stands on the lower edge, with its figure.
    y_axis = _upright([y for _, _, y in points if y >= FAR_BELOW * best])
    names = [name if y >= FAR_BELOW * best else f"{name} {y:.3f} ↓" for name, _, y in points]
    places = [(x_axis.place(x), y_axis.place(y)) for x, (_, _, y) in zip(xs, points, strict=True)]
    line = " ".join(f"{places[i][0]:.1f},{places[i][1]:.1f}" for i in front)
    body = [_grid(x_axis, y_axis, labels), f'<polyline class="front" points="{line}"/>' if len(front) > 1 else ""]
    body += [mark(i, *place) for i, place in enumerate(places)]
    body += _names(names, places, [places[i] for i in front])
    return _drawing(ident, title, description, body)


def curves(
    ident: str,
    title: str,
    description: str,
    series: Sequence[tuple[int, Sequence[tuple[float, float]]]],
    labels: tuple[str, str],
    *,
    log: bool = False,
) -> str:
    """Draw curves.

    Parameters
    ----------
    ident, title, description : str
        As in `scatter`.
    series : sequence of (number, points)
        The number chooses colour and mark.
    labels : (str, str)
        Of the two axes.
    log : bool
        Whether x is on a logarithmic scale.

    Returns
    -------
    str
        An ``svg`` element.
    """
    xs = [x for _, points in series for x, _ in points]
    x_axis = Axis(min(xs), max(max(xs), min(xs) * 1.01 + 1e-9), log, LEFT + 8, WIDTH - RIGHT - 8)
    y_axis = _upright([y for _, points in series for _, y in points])
    body = [_grid(x_axis, y_axis, labels)]
    for number, points in series:
        places = [(x_axis.place(x), y_axis.place(y)) for x, y in points]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        body.append(f'<polyline class="curve c{number % COLOURS}" points="{line}"/>')
        body += [mark(number, x, y) for x, y in places]
    return _drawing(ident, title, description, body)


def bars(
    ident: str,
    title: str,
    description: str,
    groups: Sequence[str],
    series: Sequence[tuple[int, Sequence[float | None]]],
    labels: tuple[str, str],
) -> str:
    """Draw groups of bars.

    Parameters
    ----------
    ident, title, description : str
        As in `scatter`.
    groups : sequence of str
        Names of the groups.
    series : sequence of (number, values)
        The number chooses the colour; a value a group, None for no bar.
    labels : (str, str)
        Of the two axes.

    Returns
    -------
    str
        An ``svg`` element.
    """
    highest = max((value for _, values in series for value in values if value is not None), default=0.0)
    y_axis = Axis(0.0, max(highest * 1.05, 1e-3), False, HEIGHT - BOTTOM, TOP)
    room = (WIDTH - LEFT - RIGHT) / max(1, len(groups))
    width = 0.84 * room / max(1, len(series))
    body = [_grid(None, y_axis, labels)]
    for g, group in enumerate(groups):
        begin = LEFT + room * (g + 0.08)
        body.append(
            f'<text class="tick" x="{begin + 0.42 * room:.1f}" y="{HEIGHT - BOTTOM + 16}">{escape(group)}</text>'
        )
        for s, (number, values) in enumerate(series):
            value = values[g]
            if value is not None:
                top = y_axis.place(value)
                place = f'x="{begin + s * width:.1f}" y="{top:.1f}" width="{0.92 * width:.1f}"'
                body.append(f'<rect class="bar c{number % COLOURS}" {place} height="{HEIGHT - BOTTOM - top:.1f}"/>')
    return _drawing(ident, title, description, body)


def mark(number: int, x: float, y: float) -> str:
    """Draw the mark of a series: circle, square, triangle or diamond, so that colour alone tells nothing.

    Parameters
    ----------
    number : int
        Of the series.
    x, y : float
        Its middle.

    Returns
    -------
    str
        An SVG element.
    """
    kind = f'class="mark c{number % COLOURS}"'
    if number % 4 == 0:
        return f'<circle {kind} cx="{x:.1f}" cy="{y:.1f}" r="5"/>'
    shapes = {1: "M-4.5-4.5h9v9h-9z", 2: "M0-6L5.5 4.5h-11z", 3: "M0-6.2L6.2 0L0 6.2L-6.2 0z"}
    return f'<path {kind} d="{shapes[number % 4]}" transform="translate({x:.1f} {y:.1f})"/>'


def key(number: int) -> str:
    """Draw a mark to stand before a name in running text.

    Parameters
    ----------
    number : int
        Of the series.

    Returns
    -------
    str
        An ``svg`` element.
    """
    return f'<svg class="key" viewBox="-8 -8 16 16" aria-hidden="true">{mark(number, 0, 0)}</svg>'


def tick_text(value: float) -> str:
    """Write a value of an axis.

    Parameters
    ----------
    value : float
        The value.

    Returns
    -------
    str
        As short as it can be.

    Examples
    --------
    >>> tick_text(0.30000000000000004), tick_text(10.0), tick_text(0.001)
    ('0.3', '10', '0.001')
    """
    return f"{value:.6g}"


def _upright(values: Sequence[float]) -> Axis:
    low, high = min(values), max(values)
    room = max(0.08 * (high - low), 0.005)
    return Axis(max(0.0, low - room), min(max(1.0, high), high + room), False, HEIGHT - BOTTOM, TOP)


def _grid(x_axis: Axis | None, y_axis: Axis, labels: tuple[str, str]) -> str:
    bottom = HEIGHT - BOTTOM
    parts = []
    for tick in y_axis.ticks():
        y = y_axis.place(tick)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="tick side" x="{LEFT - 6}" y="{y + 4:.1f}">{tick_text(tick)}</text>')
    for tick in x_axis.ticks() if x_axis is not None else ():
        x = x_axis.place(tick) if x_axis is not None else 0.0
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{bottom}"/>')
        text = tick_text(tick)
        # A long number at the right end moves in rather than over the edge.
        inside = min(x, WIDTH - LETTER * len(text) / 2)
        parts.append(f'<text class="tick" x="{inside:.1f}" y="{bottom + 16}">{text}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text class="label" x="{middle:.0f}" y="{HEIGHT - 8}">{escape(labels[0])}</text>')
    upright = f'transform="translate(14 {(TOP + bottom) / 2:.0f}) rotate(-90)"'
    parts.append(f'<text class="label" {upright}>{escape(labels[1])}</text>')
    return "".join(parts)


def _names(names: Sequence[str], places: Sequence[Point], line: Sequence[Point]) -> list[str]:
    """Write names beside their points, on the side and at the height where they hide neither points nor the line."""
    taken = [(x - 7, y - 7, x + 7, y + 7) for x, y in places]
    for (x1, y1), (x2, y2) in pairwise(line):
        steps = [(x1 + (x2 - x1) * i / LINE_STEPS, y1 + (y2 - y1) * i / LINE_STEPS) for i in range(1, LINE_STEPS)]
        taken += [(x - 1, y - 1, x + 1, y + 1) for x, y in steps]
    parts = []
    for name, (x, y) in sorted(zip(names, places, strict=True), key=lambda entry: entry[1][1]):
        width = LETTER * len(name)
        spots = [(dx, dy) for dy in (4, -8, 17, -20, 30, -34, 46) for dx in (10, -10 - width, -width / 2)]
        boxes = [(x + dx, y + dy - LINE + 4, x + dx + width, y + dy + 3) for dx, dy in spots]
        inside = [i for i, box in enumerate(boxes) if _inside(box)] or [0]
        best = min(inside, key=lambda i: sum(_overlap(boxes[i], other) for other in taken))
        taken.append(boxes[best])
        parts.append(f'<text class="name" x="{boxes[best][0]:.1f}" y="{y + spots[best][1]:.1f}">{escape(name)}</text>')
    return parts


def _inside(box: tuple[float, float, float, float]) -> bool:
    return box[0] >= LEFT and box[2] <= WIDTH and box[1] >= 0 and box[3] <= HEIGHT - BOTTOM


def _overlap(one: tuple[float, float, float, float], other: tuple[float, float, float, float]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _round_step(rough: float) -> float:
    power = 10.0 ** math.floor(math.log10(max(rough, 1e-12)))
    return next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999)


def _drawing(ident: str, title: str, description: str, body: Sequence[str]) -> str:
    head = (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-labelledby="{ident}-title {ident}-text">'
        f'<title id="{ident}-title">{escape(title)}</title><desc id="{ident}-text">{escape(description)}</desc>'
    )
    return head + "".join(body) + "</svg>"
