"""Rankings of rows of any number, as lines of TSV or JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from abound.learn.base import TopK
from abound.learn.model import Model
from abound.serve.inputs import Data, inputs_of
from abound.serve.output import plain

Writer = Callable[[TopK], bytes]


def rank_chunks(model: Model, chunks: Iterable[Data], k: int) -> Iterator[TopK]:
    """Rank rows chunk by chunk.

    Parameters
    ----------
    model : Model
        What ranks.
    chunks : iterable of Documents or Vectors
        The rows.
    k : int
        Classes wanted for each row.

    Yields
    ------
    TopK
        The best classes of the rows of a chunk.
    """
    for rows in chunks:
        yield model.predict_topk(inputs_of(model, rows), k)


def tsv_lines(topk: TopK) -> bytes:
    r"""Write rankings as TSV: ``label<TAB>score<TAB>label<TAB>score`` and so on, a line a row.

    Parameters
    ----------
    topk : TopK
        Rankings; classes that are missing are left out.

    Returns
    -------
    bytes
        The lines.

    Examples
    --------
    >>> import numpy as np
    >>> tsv_lines(TopK(np.array([["tea", "coffee"], ["tea", None]]), np.array([[0.75, 0.25], [0.5, -np.inf]])))
    b'tea\t0.75\tcoffee\t0.25\ntea\t0.5\n'
    """
    lines = []
    for labels, scores in _pairs(topk):
        names = [str(label) for label in labels]
        for name in names:
            if "\t" in name or "\n" in name or "\r" in name:
                raise ValueError(f"the label {name!r} holds a tab or line end, which TSV cannot hold; use --json")
        lines.append("\t".join(f"{name}\t{score:.6g}" for name, score in zip(names, scores, strict=True)))
    return "".join(line + "\n" for line in lines).encode()


def json_lines(titles: Mapping[Any, str] | None = None) -> Writer:
    r"""Return a function that writes rankings as JSON, an object a row.

    Parameters
    ----------
    titles : mapping of label to str, optional
        What to show for a class.

    Returns
    -------
    callable
        Takes rankings, returns lines: ``labels``, ``scores`` and, where there are any, ``titles``.

    Examples
    --------
    >>> import numpy as np
    >>> json_lines()(TopK(np.array([["tea", "coffee"]]), np.array([[0.75, 0.25]])))
    b'{"labels": ["tea", "coffee"], "scores": [0.75, 0.25]}\n'
    """

    def lines(topk: TopK) -> bytes:
        objects = []
        for labels, scores in _pairs(topk):
            entry: dict[str, Any] = {"labels": plain(labels), "scores": [float(f"{score:.6g}") for score in scores]}
            if titles is not None:
                entry["titles"] = [titles.get(label, "") for label in labels]
            objects.append(json.dumps(plain(entry), ensure_ascii=False, allow_nan=False))
        return "".join(line + "\n" for line in objects).encode()

    return lines


def _pairs(topk: TopK) -> Iterator[tuple[list[Any], list[float]]]:
    """The labels and scores of each row, without what is missing."""
    for labels, scores in zip(topk.labels.tolist(), topk.scores.tolist(), strict=True):
        while labels and labels[-1] is None:
            labels.pop()
        yield labels, scores[: len(labels)]
