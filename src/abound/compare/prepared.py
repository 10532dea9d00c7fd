"""Rows made ready for learners: vectors and numbered labels as files that processes map instead of copying.

All learners of a stage get the same arrays. The vectoriser is fitted on the rows to learn from alone.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from abound.compare.splits import Halves, compact
from abound.labels import Labels, encode
from abound.read.documents import Documents
from abound.read.taxonomy import Taxonomy
from abound.vectorise.text import TextVectorizer

WARM_UP_ROWS = 200
"""Rows of a first call that compiles, or fetches, machine code: that is no time of work."""


@dataclass(frozen=True)
class Facts:
    """What is known of prepared rows.

    Parameters
    ----------
    fit_rows, held_rows : int
        Rows to learn from and to measure on.
    classes, features : int
        Of the rows to learn from.
    nonzeros : int
        Entries of the rows to learn from.
    labels_a_row : float
        Labels of a row to learn from, on average.
    vectorise_fit, vectorise_held : float
        Seconds it took to make the vectors.
    """

    fit_rows: int
    held_rows: int
    classes: int
    features: int
    nonzeros: int
    labels_a_row: float
    vectorise_fit: float
    vectorise_held: float


@dataclass(frozen=True, eq=False)
class Prepared:
    """Rows to learn from and to measure on.

    Parameters
    ----------
    X, held_X : csr_array
        The rows.
    labels : Labels
        Of the rows to learn from.
    truth : Labels
        Of the rows to measure on, numbered alike; labels that no row to learn from has come last.
    taxonomy : Taxonomy or None
        Of the classes.
    facts : Facts
        Sizes and seconds.
    """

    X: Any
    held_X: Any
    labels: Labels
    truth: Labels
    taxonomy: Taxonomy | None
    facts: Facts


def prepare(halves: Halves, text: Mapping[str, Any], taxonomy: Taxonomy | None, jobs: int) -> Prepared:
    """Make vectors of texts and number the labels.

    Parameters
    ----------
    halves : Halves
        Rows to learn from, rows to measure on.
    text : mapping
        Parameters of `TextVectorizer`.
    taxonomy : Taxonomy or None
        Of the classes.
    jobs : int
        Threads.

    Returns
    -------
    Prepared
        Ready to be saved.
    """
    labels = compact(halves.fit.labels)
    if not labels.n_classes:
        raise ValueError("no row to learn from has a label")
    truth = encode(compact(halves.held.labels), known=labels.classes)
    seconds = (0.0, 0.0)
    if isinstance(halves.fit, Documents) and isinstance(halves.held, Documents):
        vectoriser = TextVectorizer(**text, n_jobs=jobs)
        vectoriser.fit_transform(halves.fit.text_bytes.take(slice(WARM_UP_ROWS)))
        begin = time.perf_counter()
        X = vectoriser.fit_transform(halves.fit.text_bytes)
        middle = time.perf_counter()
        held_X = vectoriser.transform(halves.held.text_bytes)
        seconds = middle - begin, time.perf_counter() - middle
    elif isinstance(halves.fit, Documents) or isinstance(halves.held, Documents):
        raise ValueError("some parts of the data are texts and some are vectors")
    else:
        X, held_X = halves.fit.X, halves.held.X.copy()
        held_X.resize((held_X.shape[0], X.shape[1]))
    facts = Facts(
        *(X.shape[0], held_X.shape[0], labels.n_classes, X.shape[1], int(X.nnz)),
        *(len(labels.ids) / max(1, len(labels)), *seconds),
    )
    return Prepared(X, held_X, labels, truth, taxonomy, facts)


def save(prepared: Prepared, folder: Path) -> None:
    """Write prepared rows as files.

    Parameters
    ----------
    prepared : Prepared
        The rows.
    folder : Path
        An empty folder.
    """
    labels, truth = prepared.labels, prepared.truth
    arrays: dict[str, Any] = {
        "y_indptr": labels.indptr,
        "y_ids": labels.ids,
        "t_indptr": truth.indptr,
        "t_ids": truth.ids,
    }
    for name, X in (("X", prepared.X), ("H", prepared.held_X)):
        arrays |= {f"{name}_indptr": X.indptr, f"{name}_indices": X.indices, f"{name}_data": X.data}
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array, allow_pickle=False)
    if prepared.taxonomy is not None:
        tree: dict[str, Any] = prepared.taxonomy.to_arrays()
        np.savez(folder / "taxonomy.npz", **tree)
    about = {"classes": truth.classes.tolist(), "kinds": [labels.kind, truth.kind], "facts": asdict(prepared.facts)}
    (folder / "about.json").write_text(json.dumps(about), encoding="utf-8")


def load(folder: Path) -> Prepared:
    """Map the rows that `save` wrote.

    Parameters
    ----------
    folder : Path
        The folder.

    Returns
    -------
    Prepared
        The same rows, read-only.
    """
    about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
    facts = Facts(**about["facts"])
    classes = np.array(about["classes"])
    arrays = {file.stem: np.load(file, mmap_mode="r", allow_pickle=False) for file in folder.glob("*.npy")}

    def matrix(name: str, n_rows: int) -> Any:
        parts = (arrays[f"{name}_{part}"] for part in ("data", "indices", "indptr"))
        return sp.csr_array(tuple(parts), shape=(n_rows, facts.features))

    kinds = about["kinds"]
    taxonomy = None
    if (folder / "taxonomy.npz").exists():
        with np.load(folder / "taxonomy.npz", allow_pickle=False) as stored:
            taxonomy = Taxonomy.from_arrays(dict(stored))
    return Prepared(
        matrix("X", facts.fit_rows),
        matrix("H", facts.held_rows),
        Labels(arrays["y_indptr"], arrays["y_ids"], classes[: facts.classes], kinds[0]),
        Labels(arrays["t_indptr"], arrays["t_ids"], classes, kinds[1]),
        taxonomy,
        facts,
    )
