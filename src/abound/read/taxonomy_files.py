"""Files and lists that describe a taxonomy, as pairs of parent and child."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from abound.read.compression import Source
from abound.read.errors import FormatError

Name = str | int
Pair = tuple[Name, Name]


def read_edges(path: str | os.PathLike[str]) -> list[tuple[str, str]]:
    """Read ``parent child`` a line.

    Parameters
    ----------
    path : str or path
        The file, plain or compressed. Names are separated by a tab, and may then hold spaces, or by white space.
        Blank lines are skipped.

    Returns
    -------
    list of (str, str)
        Parent and child.
    """
    edges = []
    with Source(path) as source:
        for number, line in _filled_lines(source):
            fields = [field.strip() for field in line.split("\t")] if "\t" in line.strip() else line.split()
            if len(fields) != 2 or not all(fields):
                raise FormatError(source.name, number, "expected two names, parent and child", line)
            edges.append((fields[0], fields[1]))
        if not edges:
            raise FormatError(source.name, 1, "the file is empty: it has no edges")
    return edges


def read_paths(path: str | os.PathLike[str], separator: str) -> list[str]:
    """Read a label path a line.

    Parameters
    ----------
    path : str or path
        The file, plain or compressed. Blank lines are skipped.
    separator : str
        What stands between the names of a path.

    Returns
    -------
    list of str
        The paths.
    """
    with Source(path) as source:
        paths = []
        for number, line in _filled_lines(source):
            if not all(part.strip() for part in line.split(separator)):
                raise FormatError(source.name, number, "an empty name in a path", line)
            paths.append(line.strip())
        if not paths:
            raise FormatError(source.name, 1, "the file is empty: it has no paths")
    return paths


def read_titles(path: str | os.PathLike[str]) -> dict[str, str]:
    """Read ``label<TAB>title`` a line.

    Parameters
    ----------
    path : str or path
        The file, plain or compressed. Blank lines are skipped.

    Returns
    -------
    dict
        The title of each label.
    """
    titles = {}
    with Source(path) as source:
        for number, line in _filled_lines(source):
            label, tab, title = line.partition("\t")
            if not tab or not label.strip():
                raise FormatError(source.name, number, "expected label<TAB>title", line)
            titles[label.strip()] = title.strip()
    return titles


def edges_of_paths(paths: Iterable[str | Sequence[Name]], separator: str) -> tuple[list[Name], list[Pair]]:
    """Turn label paths into nodes and edges.

    Parameters
    ----------
    paths : iterable of str or sequence
        A string is split at the separator and its nodes are its beginnings: ``a``, ``a/b``, ``a/b/c``. In a list each
        element is a node.
    separator : str
        What stands between the names of a string.

    Returns
    -------
    nodes : list
        The nodes, as they appear.
    edges : list of (parent, child)
        The edges, as they appear.
    """
    nodes: dict[Name, None] = {}
    edges: dict[Pair, None] = {}
    for path in paths:
        if isinstance(path, str):
            parts = path.split(separator)
            chain: list[Name] = [separator.join(parts[: i + 1]).strip() for i in range(len(parts))]
        else:
            chain = list(path)
        nodes.update(dict.fromkeys(chain))
        edges.update(dict.fromkeys(pairwise(chain)))
    return list(nodes), list(edges)


def _filled_lines(source: Source) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(source.lines(), start=1):
        if line.strip():
            yield number, line.rstrip("\r\n")
