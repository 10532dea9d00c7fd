"""Finding classes by their labels and titles, as somebody types."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

END = "\n"
GAP = "\t"
MOST_HITS = 2000
"""Hits that are looked at: with more, the words are too common to tell which is meant."""


class ClassSearch:
    """An index of names for people.

    Parameters
    ----------
    labels, titles : sequences of str
        Of each class.

    Examples
    --------
    >>> search = ClassSearch(["S61", "S62"], ["Open wound of wrist", "Fracture at wrist and hand level"])
    >>> search.find("wrist", 5), search.find("wrist frac", 5), search.find("s62", 5), search.find("knee", 5)
    ([0, 1], [1], [1], [])
    """

    def __init__(self, labels: Sequence[str], titles: Sequence[str]) -> None:
        lines = [_line(label, title) for label, title in zip(labels, titles, strict=True)]
        # One long string is searched at the speed of memory.
        self._text = END + END.join(lines) + END
        self._begins: list[int] = []
        place = 1
        for line in lines:
            self._begins.append(place)
            place += len(line) + 1

    def find(self, query: str, limit: int) -> list[int]:
        """Find classes whose label and title hold all words of a query.

        Parameters
        ----------
        query : str
            Words, or beginnings or parts of words; nothing finds the first classes.
        limit : int
            How many at most.

        Returns
        -------
        list of int
            Their ids, best first: labels that are or begin with the query, then those with words that begin with its
            words, then the rest.
        """
        words = _folded(query).split()
        if not words:
            return list(range(min(limit, len(self._begins))))
        rarest = max(words, key=len)
        hits: list[tuple[int, int, int]] = []
        place = self._text.find(rarest)
        while place >= 0 and len(hits) < MOST_HITS:
            begin = self._text.rfind(END, 0, place) + 1
            end = self._text.find(END, place)
            line = self._text[begin:end]
            if all(word in line for word in words):
                c = bisect_right(self._begins, begin) - 1
                hits.append((self._rank(line, words), len(line), c))
            place = self._text.find(rarest, end)
        return [c for _, _, c in sorted(hits)[:limit]]

    @staticmethod
    def _rank(line: str, words: list[str]) -> int:
        label, _, title = line.partition(GAP)
        query = " ".join(words)
        if label == query:
            return 0
        if label.startswith(query):
            return 1
        if title.startswith(query):
            return 2
        padded = f" {label} {title}"
        return 3 if all(f" {word}" in padded for word in words) else 4


def _line(label: str, title: str) -> str:
    return f"{_folded(label)}{GAP}{_folded(title)}"


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
