"""A model that learns corrections one by one: the same model from the same file and the same corrections, bit for bit.

It does not matter where the sequence was cut: by a snapshot that was written and read back, by a crash, or by how many
corrections waited at a time.
"""

from __future__ import annotations

import copy
from collections import ChainMap
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from abound.labels import Labels
from abound.learn.model import Model
from abound.learn.online import Examples, FrozenState, OnlineClassifier
from abound.serve.journal import Correction
from abound.serve.version import InputError
from abound.validation import LARGEST, as_rows, find_too_large, frozen
from abound.vectorise.blocks import Block, encode
from abound.vectorise.lexicon import Lexicon, Space, scan
from abound.vectorise.text import TextVectorizer
from abound.vectorise.vocabulary import Vocabulary

MOST_TRIES = 20
"""How often a correction is learned at most."""

ALWAYS_SPARSE = 2.0
"""Share of the classes from which a prototype learner keeps a feature's weights dense: more than there are."""

ONE = frozen(np.ones(1), np.float32)
"""The weight of a row."""


class Outcome(NamedTuple):
    """What became of a correction.

    Parameters
    ----------
    was_right : bool
        The model had it right before.
    tries : int
        How often it was learned; 0 if the text holds no word.
    """

    was_right: bool
    tries: int


def can_learn(model: Model) -> bool:
    """Tell whether a model can learn corrections.

    Parameters
    ----------
    model : Model
        The model.

    Returns
    -------
    bool
        True for an online learner whose state was kept.
    """
    return isinstance(model.estimator, OnlineClassifier) and model.estimator.can_learn


class Student:
    """A model that learns corrections.

    Parameters
    ----------
    model : Model
        Nobody else's, see `own_copy`: it is changed.
    """

    def __init__(self, model: Model) -> None:
        if not can_learn(model):
            raise ValueError(
                f"the learner {model.estimator.learner!r} cannot learn corrections: it is not online, or was saved "
                "without its state"
            )
        one_thread(model)
        learner: Any = model.estimator
        if hasattr(learner, "dense_share"):
            # Dense rows are summed in another order than lists, and a file keeps lists only: with lists throughout,
            # rounding does not tell whether the model was saved in between.
            learner.dense_share = ALWAYS_SPARSE
        self.model = model
        self._titles: dict[Any, str] = {}
        self._ids: dict[Any, int] | None = None
        self._coder: Any = None
        self._coder_sizes: tuple[int, int] | None = None

    def learn(self, correction: Correction) -> Outcome:
        """Learn a correction again and again until its class is ahead of all others, or often enough.

        Parameters
        ----------
        correction : Correction
            Texts may hold new words, vectors new features, and the class may be new.

        Returns
        -------
        Outcome
            How it went.
        """
        X = self._row(correction)
        if X.nnz == 0:
            return Outcome(False, 0)
        was_right = False
        for tries in range(1, MOST_TRIES + 1):
            # The learner looks whether the row is right before it learns it.
            is_right = self._learn_once(X, correction.labels)
            was_right = was_right or (is_right and tries == 1)
            if is_right:
                break
        if correction.title:
            self._titles = {**self._titles, correction.labels[0]: correction.title}
        return Outcome(was_right, tries)

    def freeze(self) -> Model:
        """Return a model that ranks like this one now and never changes.

        Returns
        -------
        Model
            It shares nothing that this one will write to.
        """
        model = self.model
        return replace(
            model,
            estimator=model.estimator._frozen_copy(),
            vectoriser=None if model.vectoriser is None else self._frozen_vectoriser(model.vectoriser),
            titles=self._all_titles(),
        )

    def save(self, path: Path, extra: dict[str, str]) -> None:
        """Write the model with all it needs to learn on.

        Parameters
        ----------
        path : Path
            Where to; written beside and renamed.
        extra : dict
            Entries for the header.
        """
        replace(self.model, titles=self._all_titles(), extra={**self.model.extra, **extra}).save(path)

    def _learn_once(self, X: Any, labels: tuple[Any, ...]) -> bool:
        """Learn a row; tell whether it was right before."""
        learner: Any = self.model.estimator
        if self._ids is None:
            self._ids = {label: i for i, label in enumerate(learner.classes_.tolist())}
        is_single = learner._kind == "single"
        may_cut = getattr(learner, "keep_when", "end") == "pass"
        if may_cut or isinstance(learner._state, FrozenState) or any(label not in self._ids for label in labels):
            learner.partial_fit(X, [labels[0]] if is_single else [list(labels)])
            learner._run = (None, 0)
            self._ids = None
            return bool(learner.history_.pop()["online_R1"] == 1)
        # What partial_fit does behind its checks, which look at every class and every edge.
        rows = learner._view(as_rows(X))
        ids = np.array([self._ids[label] for label in labels], np.int32)
        known = Labels(np.array([0, len(ids)]), ids, learner.classes_, "single" if is_single else "lists")
        learner.n_features_in_ = X.shape[1]
        learner._extend(rows, known)
        learner._state.index = None
        learner._meet(rows)
        tally = learner._learn(Examples(rows, known, ONE, np.zeros(1, np.int64)), True)
        learner._settle(rows)
        return bool(tally[1] == 1)

    def _row(self, correction: Correction) -> Any:
        vectoriser = self.model.vectoriser
        if vectoriser is not None:
            texts = [correction.text or ""]
            if not count_known(vectoriser, texts[0]):
                vectoriser.partial_fit(texts)
            return vectoriser.transform(texts)
        row = vector_row(correction.features or (), self.model.estimator.n_features_in_)
        entry = find_too_large(row.data)
        if entry is not None:
            raise InputError("features", f"column {row.indices[entry]} is {row.data[entry]:.3g}, beyond ±{LARGEST:.0e}")
        return row

    def _all_titles(self) -> Any:
        titles = self.model.titles
        if not self._titles:
            return titles
        return dict(self._titles) if titles is None else ChainMap(dict(self._titles), titles)  # type: ignore[arg-type]

    def _frozen_vectoriser(self, vectoriser: TextVectorizer) -> TextVectorizer:
        """A copy with tables of its own; they are copied only if there are new words since the last one."""
        known: Any = getattr(vectoriser, "_vocabulary", None)
        if isinstance(known, Vocabulary) and self._coder_sizes != known.coder.sizes:
            self._coder_sizes, self._coder = known.coder.sizes, _copied_lexicon(known.coder)
        return _copied_vectoriser(vectoriser, self._coder)


def warm_up(model: Model) -> None:
    """Compile what learning needs, on a tiny model of the same kind, so that the first correction does not wait for it.

    Parameters
    ----------
    model : Model
        Tells the kind; nothing is done to it.
    """
    learner: Any = clone(model.estimator)
    plain = {"passes": 1, "validation_fraction": 0.0, "patience": None, "n_jobs": None}
    learner.set_params(**{name: value for name, value in plain.items() if name in learner.get_params(deep=False)})
    texts = ["black tea", "white coffee"] * 4
    vectoriser = TextVectorizer()
    tiny = Model(learner.fit(vectoriser.fit_transform(texts), ["tea", "coffee"] * 4), vectoriser)
    with TemporaryDirectory() as folder:
        tiny.save(path := Path(folder, "tiny"))
        student = Student(Model.load(path))
        for label in ("tea", "coffee", "mate"):
            student.learn(Correction((label,), f"green {label}"))
        student.freeze()


def own_copy(model: Model) -> Model:
    """Copy a model as it comes from its file, so that one may learn while the other ranks; mapped arrays are shared.

    Parameters
    ----------
    model : Model
        A model that has not learned anything since it was loaded.

    Returns
    -------
    Model
        The same model.
    """
    learner: Any = copy.copy(model.estimator)
    if hasattr(learner, "history_"):
        learner.history_ = list(learner.history_)
    vectoriser: Any = model.vectoriser
    if vectoriser is not None:
        known = getattr(vectoriser, "_vocabulary", None)
        vectoriser = _copied_vectoriser(
            vectoriser, _copied_lexicon(known.coder) if isinstance(known, Vocabulary) else None
        )
    return replace(model, estimator=learner, vectoriser=vectoriser, extra=dict(model.extra))


def _copied_vectoriser(vectoriser: TextVectorizer, coder: Lexicon | None) -> TextVectorizer:
    twin = copy.copy(vectoriser)
    if hasattr(vectoriser, "_vocabulary"):
        twin._vocabulary = copy.copy(vectoriser._vocabulary)
        if isinstance(twin._vocabulary, Vocabulary) and coder is not None:
            twin._vocabulary.coder = coder
    return twin


def count_known(vectoriser: TextVectorizer, text: str) -> bool:
    """Let a vectoriser take in a text that has no new word, in a fraction of the time that `partial_fit` takes.

    Parameters
    ----------
    vectoriser : TextVectorizer
        It counts one more text.
    text : str
        The text.

    Returns
    -------
    bool
        False, and nothing is done, if a word came after `fit`, or it takes more than a look at words to know.
    """
    known = getattr(vectoriser, "_vocabulary", None)
    reading = vectoriser._reading([text])
    is_plain = reading.analyze is None and reading.preprocess is None and tuple(reading.ngram_range) == (1, 1)
    if not isinstance(known, Vocabulary) or not is_plain:
        return False
    space = Space()
    n_words = int(scan(Block(encode([text]), None), reading, space)[-1])
    known.coder.words.find(space.tokens, n_words, space.ids, may_grow=False)
    words = space.ids[:n_words]
    words = words[(words < 0) | (words >= known.coder.n_stop_words)]
    features = known.features.of_words[words] if len(known.features.of_words) else words
    if (words < 0).any() or (features < 0).any() or (features >= known.n_fitted).any():
        return False
    known.n_documents += 1
    return True


def _copied_lexicon(lexicon: Lexicon) -> Lexicon:
    twin = copy.copy(lexicon)
    twin._tables = copy.deepcopy(lexicon._tables)
    return twin


def one_thread(model: Model) -> Model:
    """Let a model rank in the calling thread: a request is too small to be shared out.

    Parameters
    ----------
    model : Model
        Changed in place.

    Returns
    -------
    Model
        The same.
    """
    model.estimator.set_params(n_jobs=None)
    if model.vectoriser is not None:
        model.vectoriser.set_params(n_jobs=None)
    return model


def vector_row(features: Any, width: int) -> Any:
    """Make a row of pairs.

    Parameters
    ----------
    features : sequence of (int, float)
        Columns from 0 and their values; values of a column that is named twice are added up.
    width : int
        The least width.

    Returns
    -------
    csr_array
        Of one row.

    Examples
    --------
    >>> vector_row([(2, 1.0), (0, 0.5)], 2).toarray().tolist()
    [[0.5, 0.0, 1.0]]
    """
    columns = np.array([column for column, _ in features], np.int32)
    values = np.array([value for _, value in features], np.float32)
    shape = (1, max(width, int(columns.max(initial=-1)) + 1))
    row = sp.csr_array((values, (np.zeros(len(columns), np.int32), columns)), shape=shape)
    row.sum_duplicates()
    return row
