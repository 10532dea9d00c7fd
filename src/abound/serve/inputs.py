"""DATA on the command line: a file, a folder with train and test files, ``-`` for standard input, or ``builtin:icd10``.

Whether a file holds texts or vectors is told by its suffix, else by its first line; a model knows what it takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from abound.labels import Labels
from abound.learn.model import Model
from abound.read.compression import Source
from abound.read.data import BUILTIN, SPLITS, read_data
from abound.read.datasets import Dataset, load_dataset, load_icd10
from abound.read.disk_rows import is_disk_rows, open_rows
from abound.read.documents import Documents, iter_documents, read_documents
from abound.read.formats import Vectors, iter_vectors, read_vectors
from abound.read.sniff import content_format, suffix_format
from abound.serve.settings import check_names, keyword_names

Data = Documents | Vectors

ZERO_BASED = "zero_based"
"""Entry of a model's header that says how the vectors it learned from counted their features."""


def find_dataset(data: str, options: Mapping[str, Any] | None = None) -> Dataset | None:
    """Load a data set of several parts.

    Parameters
    ----------
    data : str
        ``builtin:icd10``, ``builtin:icd10:random`` or a folder.
    options : mapping, optional
        How to read it: a folder takes ``group_column``, all else is refused.

    Returns
    -------
    Dataset or None
        None if ``data`` names a file.
    """
    if data.startswith(BUILTIN):
        name = data.removeprefix(BUILTIN).replace(":", "-")
        if name not in SPLITS:
            known = ", ".join(BUILTIN + known.replace("-", ":") for known in SPLITS)
            raise ValueError(f"{data} is no built-in data set; there are {known}")
        check_names(options or (), (), f"the data set {data}")
        return load_icd10(SPLITS[name])
    if data == "-" or not Path(data).is_dir():
        return None
    check_names(options or (), ("group_column",), f"the data set {data}")
    return load_dataset(data, **(options or {}))


def read_training_data(data: str, options: Mapping[str, Any]) -> Dataset:
    """Read what a model is to be trained on.

    Parameters
    ----------
    data : str
        See this module.
    options : mapping
        How to read a file: parameters of `abound.read.data.read_data`.

    Returns
    -------
    Dataset
        Of a file, the training part alone.
    """
    dataset = find_dataset(data, options)
    if dataset is not None:
        return dataset
    check_names(options, reading_options(), "reading")
    return Dataset(data, read_data(data, **options), None, None, None, {})


def reading_options() -> list[str]:
    """List the names of the options that say how a file is read."""
    return [name for name in keyword_names(read_data) if name not in ("part", "labelled")]


def iter_data(
    model: Model, data: str, options: Mapping[str, Any], *, part: str = "test", labelled: bool = True
) -> Iterator[Data]:
    """Read data for a model in chunks, so that memory does not grow with the file.

    Parameters
    ----------
    model : Model
        Decides between texts and vectors, and how these count their features.
    data : str
        See this module.
    options : mapping
        See `read_training_data`.
    part : {"train", "valid", "test"}
        Which part of a data set of several.
    labelled : bool
        False if labels are not wanted; they may then be missing.

    Yields
    ------
    Documents or Vectors
        The next rows; their labels are whole numbers if the model's are.
    """
    for rows in _chunks(model, data, options, part, labelled):
        yield replace(rows, labels=_labels_like(model, rows.labels)) if labelled else rows


def _chunks(model: Model, data: str, options: Mapping[str, Any], part: str, labelled: bool) -> Iterator[Data]:
    dataset = find_dataset(data, options)
    if dataset is not None:
        rows = dataset.part(part)
        _check_kind(model, data, "vectors" if isinstance(rows, Vectors) else "tsv")
        _check_base(model, data, rows)
        yield rows
        return
    if options.get("format", "rows") == "rows" and is_disk_rows(data):
        check_names(options, ("format",), "a file of rows")
        mapped = open_rows(data)
        _check_kind(model, data, "vectors")
        _check_base(model, data, mapped)
        yield from mapped.chunks()
        return
    with Source(data) as source:
        _check_kind(model, source.name, _format(source, options))
        if model.vectoriser is not None:
            yield from iter_documents(source, labelled=labelled, **_document_options(options))
        else:
            settings = {"allow_unlabelled": not labelled, ZERO_BASED: counts_from_zero(model)}
            yield from iter_vectors(source, **{**settings, **_vector_options(options)})


def counts_from_zero(model: Model) -> bool | None:
    """Tell how the vectors that a model learned from counted their features.

    Parameters
    ----------
    model : Model
        A model of vectors.

    Returns
    -------
    bool or None
        Whether from 0; None if it is not known.
    """
    return {"true": True, "false": False}.get(model.extra.get(ZERO_BASED, ""))


def label_like(model: Model, name: str) -> Any:
    """Turn a label as it is written into a label of the model's type.

    Parameters
    ----------
    model : Model
        A model trained from a file has strings; one trained in Python may have whole numbers.
    name : str
        As written.

    Returns
    -------
    str or int
        The label.
    """
    if model.estimator.classes_.dtype.kind not in "iu":
        return name
    if not (name.isascii() and name.removeprefix("-").isdigit() and str(int(name)) == name):
        raise ValueError(f"the classes of the model are whole numbers, but {name!r} is none")
    return int(name)


def _labels_like(model: Model, labels: Labels) -> Labels:
    classes = [label_like(model, name) for name in labels.classes.tolist()]
    if all(isinstance(label, str) for label in classes):
        return labels
    return replace(labels, classes=np.array(classes, dtype=np.int64))


def inputs_of(model: Model, rows: Data) -> Any:
    """Return what a model ranks: texts, or vectors as wide as it knows.

    A feature that was not in training has no vote, so columns beyond the model's are left out.

    Parameters
    ----------
    model : Model
        The model.
    rows : Documents or Vectors
        Some rows.

    Returns
    -------
    TextBytes or csr_array
        For `Model.predict_topk`.
    """
    if isinstance(rows, Documents):
        return rows.text_bytes
    if rows.X.shape[1] == model.estimator.n_features_in_:
        return rows.X
    X = rows.X.copy()
    X.resize((X.shape[0], model.estimator.n_features_in_))
    return X


def _format(source: Source, options: Mapping[str, Any]) -> str | None:
    return options.get("format") or suffix_format(source.name) or content_format(source.head())


def _check_kind(model: Model, name: str, form: str | None) -> None:
    if model.vectoriser is not None and form == "vectors":
        raise ValueError(f"{name} holds vectors (index:value), but the model takes texts (or pass --read format=text)")
    if model.vectoriser is None and form not in ("vectors", None):
        raise ValueError(f"{name} holds texts, but the model takes vectors (or pass --read format=vectors)")


def _check_base(model: Model, name: str, rows: Data) -> None:
    if isinstance(rows, Vectors) and counts_from_zero(model) == (not rows.zero_based):
        raise ValueError(f"{name} counts features from {int(not rows.zero_based)}, the model from the other")


def _document_options(options: Mapping[str, Any]) -> dict[str, Any]:
    check_names(options, [name for name in keyword_names(read_documents) if name != "labelled"], "a text file")
    return dict(options)


def _vector_options(options: Mapping[str, Any]) -> dict[str, Any]:
    check_names(options, ["format", *keyword_names(read_vectors)], "a vector file")
    return {name: value for name, value in options.items() if name != "format"}
