"""What ``abound journal`` does: list corrections, write them as training data, take them back, learn them anew."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

from abound.learn.model import Model
from abound.read.compression import written_beside
from abound.read.sniff import suffix_format
from abound.read.writing import write_documents, write_vectors
from abound.serve.follower import Follower, file_version
from abound.serve.inputs import counts_from_zero
from abound.serve.journal import Entry, Journal, JournalError, journal_path
from abound.serve.student import can_learn, vector_row


def open_journal(model: Path) -> Journal:
    """Open the journal of a model file.

    Parameters
    ----------
    model : Path
        The model file.

    Returns
    -------
    Journal
        Its journal.
    """
    return Journal(journal_path(model))


def list_entries(model: Path) -> list[dict[str, Any]]:
    """List all corrections.

    Parameters
    ----------
    model : Path
        The model file.

    Returns
    -------
    list of dict
        ``entry``, ``at``, ``version``, ``id``, ``labels``, ``text`` or ``features``, and ``undone``, the entry that
        took it back.
    """
    with closing(open_journal(model)) as journal:
        undone = journal.undone()
        return [_listed(entry) | {"undone": undone.get(entry.id)} for entry in journal.entries() if entry.correction]


def export_entries(model: Path, output: Path, *, trust: bool = False) -> int:
    """Write the corrections that were not taken back as data to train on.

    Parameters
    ----------
    model : Path
        The model file.
    output : Path
        Texts as ``.tsv``, ``.csv`` or ``.jsonl``; vectors as ``.svm`` or ``.jsonl``.
    trust : bool
        See `Model.load`.

    Returns
    -------
    int
        How many were written.
    """
    entries = [entry for entry in list_entries(model) if entry["undone"] is None]
    is_text = all("text" in entry for entry in entries)
    is_single = all(len(entry["labels"]) == 1 for entry in entries)
    labels = [entry["labels"][0] if is_single else entry["labels"] for entry in entries]
    if not is_text and suffix_format(output.name) == "jsonl":
        with written_beside(output) as file:
            for entry in entries:
                file.write((json.dumps(entry, ensure_ascii=False) + "\n").encode())
    elif is_text:
        write_documents(output, [entry["text"] for entry in entries], labels)
    else:
        _write_vectors(Model.load(model, trust=trust), output, entries, labels)
    return len(entries)


def undo_entries(model: Path, entries: list[int], *, trust: bool = False) -> list[int]:
    """Take corrections back; a server that uses the model follows within a moment.

    Parameters
    ----------
    model : Path
        The model file.
    entries : list of int
        Which.
    trust : bool
        See `Model.load`.

    Returns
    -------
    list of int
        The entries that say so.
    """
    with closing(open_journal(model)) as journal:
        follower = Follower(model, journal, trust=trust)
        for entry in entries:
            if entry <= follower.base_mark:
                raise JournalError(
                    f"entry {entry} is part of {model} itself, which was trained anew from the journal; "
                    "it can be taken back only with the file it was trained from"
                )
        return [journal.undo(entry, file_version(model)) for entry in entries]


def retrain(model: Path, output: Path, *, trust: bool = False) -> dict[str, Any]:
    """Learn all corrections that were not taken back, from the model file on, and write the result.

    Parameters
    ----------
    model : Path
        The model file.
    output : Path
        Where to; it may be the model file. The file says up to which entry it has learned, so that nothing is learned
        twice.
    trust : bool
        See `Model.load`.

    Returns
    -------
    dict
        ``corrections`` that were learned, and the ``entry`` up to which.
    """
    if not can_learn(Model.load(model, trust=trust)):
        raise ValueError(f"{model}: its learner is not online, or its state was left out, so it cannot learn")
    with closing(open_journal(model)) as journal:
        follower = Follower(model, journal, use_snapshot=False, trust=trust)
        n_learned = follower.catch_up()
        follower.save(output)
        return {"corrections": n_learned, "entry": follower.applied}


def _listed(entry: Entry) -> dict[str, Any]:
    correction: Any = entry.correction
    listed = {
        "entry": entry.id,
        "at": entry.at,
        "version": entry.version,
        "id": entry.request,
        "labels": list(correction.labels),
    }
    if correction.text is not None:
        return listed | {"text": correction.text}
    return listed | {"features": [list(pair) for pair in correction.features]}


def _write_vectors(model: Model, output: Path, entries: list[dict[str, Any]], labels: list[Any]) -> None:
    import scipy.sparse as sp

    width = model.estimator.n_features_in_
    rows = [vector_row(entry["features"], width) for entry in entries]
    widest = max((row.shape[1] for row in rows), default=width)
    for row in rows:
        row.resize((1, widest))
    X = sp.vstack(rows, format="csr") if rows else sp.csr_array((0, widest))
    write_vectors(output, X, labels, header=counts_from_zero(model) is True)
