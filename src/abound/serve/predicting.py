"""Rankings of rows of any number, as lines of TSV or JSON; of a calibrated model with probabilities."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy.typing as npt

from abound.learn.model import Model
from abound.serve.inputs import Data, inputs_of
from abound.serve.output import plain


class Ranked(NamedTuple):
    """The best classes of each row, best first; probabilities are there if the model is calibrated."""

    labels: npt.NDArray[Any]
    scores: npt.NDArray[Any]
    probabilities: npt.NDArray[Any] | None = None


Writer = Callable[[Ranked], bytes]


def rank_chunks(model: Model, chunks: Iterable[Data], k: int) -> Iterator[Ranked]:
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
    Ranked
        The best classes of the rows of a chunk.
    """
    learner = model.estimator
    for rows in chunks:
        if learner.is_calibrated:
            labels, scores = model.predict_topk(inputs_of(model, rows), max(2, k))
            yield Ranked(labels[:, :k], scores[:, :k], learner.to_probabilities(scores)[:, :k])
        else:
            yield Ranked(*model.predict_topk(inputs_of(model, rows), k))


def tsv_lines(topk: Ranked) -> bytes:
    r"""Write rankings as TSV: ``label<TAB>score<TAB>label<TAB>score`` and so on, a line a row.

    Parameters
    ----------
    topk : Ranked
        Rankings; classes that are missing are left out. Probabilities, if there are any, stand in place of scores.

    Returns
    -------
    bytes
        The lines.

    Examples
    --------
    >>> import numpy as np
    >>> tsv_lines(Ranked(np.array([["tea", "coffee"], ["tea", None]]), np.array([[0.75, 0.25], [0.5, -np.inf]])))
    b'tea\t0.75\tcoffee\t0.25\ntea\t0.5\n'
    """
    lines = []
    for labels, values, probabilities in _entries(topk):
        scores = values if probabilities is None else probabilities
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
        Takes rankings, returns lines: ``labels``, ``scores`` and, where there are any, ``probabilities`` and
        ``titles``.

    Examples
    --------
    >>> import numpy as np
    >>> json_lines()(Ranked(np.array([["tea", "coffee"]]), np.array([[0.75, 0.25]])))
    b'{"labels": ["tea", "coffee"], "scores": [0.75, 0.25]}\n'
    """

    def lines(topk: Ranked) -> bytes:
        objects = []
        for labels, scores, probabilities in _entries(topk):
            entry: dict[str, Any] = {"labels": plain(labels), "scores": [float(f"{score:.6g}") for score in scores]}
            if probabilities is not None:
                entry["probabilities"] = [float(f"{probability:.6g}") for probability in probabilities]
            if titles is not None:
                entry["titles"] = [titles.get(label, "") for label in labels]
            objects.append(json.dumps(plain(entry), ensure_ascii=False, allow_nan=False))
        return "".join(line + "\n" for line in objects).encode()

    return lines


def _entries(topk: Ranked) -> Iterator[tuple[list[Any], list[float], list[float] | None]]:
    """The labels, scores and probabilities of each row, without what is missing."""
    known = topk.probabilities
    for i, (labels, scores) in enumerate(zip(topk.labels.tolist(), topk.scores.tolist(), strict=True)):
        while labels and labels[-1] is None:
            labels.pop()
        yield labels, scores[: len(labels)], None if known is None else known[i, : len(labels)].tolist()
