"""Slow, obvious twins of the kernels that read files."""

from __future__ import annotations

import re

import numpy as np


def parse_vectors(text: str) -> list[tuple[list[str], dict[int, np.float32]]]:
    """Parse a vector file without header: labels and {index: value} of each row."""
    rows = []
    for line in text.split("\n"):
        line = line.partition("#")[0].strip(" \t\r")
        if not line:
            continue
        words = re.split(r"[ \t\r]+", re.sub(r"[ \t]*,[ \t]*", ",", line))
        labels = []
        if ":" not in words[0]:
            labels = list(dict.fromkeys(words.pop(0).split(",")))
        entries = {}
        for word in words:
            index, _, value = word.partition(":")
            entries[int(index)] = np.float32(float(value))
        rows.append((labels, entries))
    return rows


def split_tabbed(text: str) -> list[tuple[list[str], str]]:
    """Split ``label,label<TAB>text`` lines."""
    rows = []
    for line in text.split("\n"):
        line = line.removesuffix("\r")
        if line.strip(" "):
            labels, _, rest = line.partition("\t")
            rows.append((list(dict.fromkeys(label.strip(" ") for label in labels.split(","))), rest))
    return rows


def split_marked(text: str) -> list[tuple[list[str], str]]:
    """Split ``__label__x __label__y text`` lines."""
    rows = []
    for line in text.split("\n"):
        rest = line.removesuffix("\r").lstrip(" \t")
        labels = []
        while rest.startswith("__label__"):
            word = re.match(r"[^ \t]*", rest).group()
            labels.append(word.removeprefix("__label__"))
            rest = rest[len(word) :].lstrip(" \t")
        if labels or rest:
            rows.append((list(dict.fromkeys(labels)), rest))
    return rows


def number_strings(strings: list[bytes]) -> tuple[list[int], list[bytes]]:
    """Number strings in the order in which they first appear."""
    place: dict[bytes, int] = {}
    return [place.setdefault(string, len(place)) for string in strings], list(place)


def path_to_root(parent: dict[str, str], node: str) -> list[str]:
    """Return a node and its ancestors in a tree, the root last."""
    path = [node]
    while path[-1] in parent:
        path.append(parent[path[-1]])
    return path


def path_length(parent: dict[str, str], a: str, b: str) -> int:
    """Return the number of edges between two nodes of a tree: those that the paths to the root do not share."""
    return len(set(path_to_root(parent, a)) ^ set(path_to_root(parent, b)))


def subtree_size(parent: dict[str, str], nodes: list[str], node: str) -> int:
    """Return the number of nodes whose path to the root leads through a node."""
    return sum(node in path_to_root(parent, other) for other in nodes)


def reachable_depth(edges: list[tuple[int, int]], n_nodes: int) -> list[int]:
    """Return the fewest edges from a root to each node of a graph without cycles, by trying all."""
    below = {child for _, child in edges}
    depth = {node: 0 for node in range(n_nodes) if node not in below}
    for step in range(n_nodes):
        for a, b in edges:
            if depth.get(a) == step and b not in depth:
                depth[b] = step + 1
    return [depth[node] for node in range(n_nodes)]
