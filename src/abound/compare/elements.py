"""Pieces of HTML. What comes in is text; what goes out is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


def section(ident: str, title: str, *parts: str) -> str:
    """Wrap parts into a section.

    Parameters
    ----------
    ident : str
        Its id.
    title : str
        Its heading.
    *parts : str
        HTML.

    Returns
    -------
    str
        HTML.
    """
    return f'<section id="{ident}"><h2>{escape(title)}</h2>{"".join(parts)}</section>'


def paragraph(text: str, kind: str = "") -> str:
    """Make a paragraph.

    Parameters
    ----------
    text : str
        Its text.
    kind : str
        Its class.

    Returns
    -------
    str
        HTML.

    Examples
    --------
    >>> paragraph("1 < 2", "quiet")
    '<p class="quiet">1 &lt; 2</p>'
    """
    return f"<p{_class(kind)}>{escape(text)}</p>"


def table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, words: Sequence[int] = (), best: int | None = None
) -> str:
    """Make a table that scrolls by itself where it is too wide.

    Parameters
    ----------
    columns : sequence of str
        The heads.
    rows : sequence of sequences of str
        The cells.
    words : sequence of int
        Columns that hold words and not figures; their lines may break.
    best : int, optional
        A row to mark.

    Returns
    -------
    str
        HTML.
    """
    kinds = ["words" if i in words else "" for i in range(len(columns))]
    heads = [f'<th scope="col"{_class(kind)}>{escape(name)}</th>' for name, kind in zip(columns, kinds, strict=True)]
    lines = []
    for number, row in enumerate(rows):
        first = f'<th scope="row"{_class(kinds[0])}>{escape(row[0])}</th>'
        others = [f"<td{_class(kind)}>{escape(text)}</td>" for text, kind in zip(row[1:], kinds[1:], strict=True)]
        lines.append(f"<tr{_class('best' if number == best else '')}>{first}{''.join(others)}</tr>")
    return (
        f'<div class="scroll" tabindex="0" role="group" aria-label="Table"><table><thead><tr>{"".join(heads)}</tr>'
        f"</thead><tbody>{''.join(lines)}</tbody></table></div>"
    )


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
