"""From rows with labels to a `Model`, and from a model to one that has learned more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from abound.compare.choose import Rule, advise, traits_of
from abound.learn.base import RankingClassifier
from abound.learn.model import Model
from abound.learn.online import OnlineClassifier
from abound.learn.registry import LEARNERS, make_learner
from abound.read.datasets import Dataset
from abound.read.disk_rows import DiskRows
from abound.read.documents import Documents
from abound.read.taxonomy import Taxonomy
from abound.serve.inputs import ZERO_BASED, Data
from abound.serve.settings import check_names
from abound.vectorise.text import TextVectorizer


class TrainingInterrupted(KeyboardInterrupt):
    """Ctrl-C during training, with the model learned so far.

    Parameters
    ----------
    model : Model
        Ready to rank.
    """

    def __init__(self, model: Model) -> None:
        super().__init__("training was interrupted")
        self.model = model


def checked_learner(name: str, parameters: Mapping[str, Any] | None = None) -> RankingClassifier:
    """Make a learner and check its parameters now, not after the data has been read.

    Parameters
    ----------
    name : str
        Its short name.
    parameters : mapping, optional
        Those that are not to have their defaults.

    Returns
    -------
    RankingClassifier
        Not fitted yet.

    Examples
    --------
    >>> checked_learner("ff", {"margin": 0.1})
    FeatureFocusClassifier(margin=0.1)
    >>> checked_learner("frequency", {"margin": 0.1})
    Traceback (most recent call last):
    ...
    ValueError: the learner 'frequency' has no parameter 'margin'; it has calibrate, cut, n_jobs
    """
    parameters = dict(parameters or {})
    if name in LEARNERS:
        check_names(parameters, LEARNERS[name]().get_params(deep=False), f"the learner {name!r}")
    learner = make_learner(name, **parameters)
    learner._check_parameters()
    return learner


def checked_vectoriser(parameters: Mapping[str, Any] | None = None) -> TextVectorizer:
    """Make a vectoriser.

    Parameters
    ----------
    parameters : mapping, optional
        Those that are not to have their defaults.

    Returns
    -------
    TextVectorizer
        Not fitted yet.
    """
    parameters = dict(parameters or {})
    check_names(parameters, TextVectorizer().get_params(deep=False), "the vectoriser of texts")
    return TextVectorizer(**parameters)


def choose_learner(dataset: Dataset, vectoriser: TextVectorizer, *, online: bool = False) -> Rule:
    """Say which learner suits the data, as ``abound compare --explain`` does.

    Parameters
    ----------
    dataset : Dataset
        Its training part and its taxonomy count.
    vectoriser : TextVectorizer
        How texts become vectors.
    online : bool
        Whether the model must go on learning.

    Returns
    -------
    Rule
        Which one to take, when, and why.
    """
    return advise(traits_of(dataset, online=online, text=vectoriser.get_params(deep=False)))[0]


def train_model(
    data: Data,
    learner: RankingClassifier,
    vectoriser: TextVectorizer | None = None,
    *,
    taxonomy: Taxonomy | None = None,
    titles: Mapping[Any, str] | None = None,
) -> Model:
    """Train a learner, and for texts a vectoriser.

    Parameters
    ----------
    data : Documents or Vectors
        The rows and their labels.
    learner : RankingClassifier
        Such as `checked_learner` makes; it is fitted.
    vectoriser : TextVectorizer, optional
        For texts; it is fitted. By default one with its own defaults; vectors have none.
    taxonomy : Taxonomy, optional
        Where the classes stand; a learner that takes a taxonomy learns with it.
    titles : mapping of label to str, optional
        What to show for a class.

    Returns
    -------
    Model
        Ready to rank.

    Raises
    ------
    TrainingInterrupted
        After Ctrl-C, if the learner is online and has learned something.

    Examples
    --------
    >>> documents = Documents.of(["green tea", "black coffee", "white tea"], ["tea", "coffee", "tea"])
    >>> train_model(documents, checked_learner("ff")).predict(["tea, please"]).tolist()
    ['tea']
    """
    if isinstance(data, Documents):
        vectoriser = TextVectorizer() if vectoriser is None else vectoriser
        X, extra = vectoriser.fit_transform(data.text_bytes), {}
    else:
        vectoriser = None
        X = data if isinstance(data, DiskRows) else data.X
        extra = {ZERO_BASED: "true" if data.zero_based else "false"}
    parameters = learner.get_params(deep=False)
    if taxonomy is not None and "taxonomy" in parameters and parameters["taxonomy"] is None:
        learner.set_params(taxonomy=taxonomy)
    model = Model(learner, vectoriser, taxonomy, titles, extra)
    try:
        # What it holds out while it learns keeps rows of a group together.
        learner._groups = data.groups
        learner.fit(X, data.labels)
    except KeyboardInterrupt:
        if not _has_learned(learner):
            raise
        raise TrainingInterrupted(model) from None
    finally:
        learner._groups = None
    return model


def learn_more(model: Model, chunks: Iterable[Data]) -> int:
    """Let an online model learn more rows, new classes and features included.

    Parameters
    ----------
    model : Model
        Changed in place.
    chunks : iterable of Documents or Vectors
        Rows and labels, learned in their order.

    Returns
    -------
    int
        How many rows were learned.
    """
    n_rows = 0
    for rows in chunks:
        if isinstance(rows, Documents):
            model.partial_fit(rows.text_bytes, rows.labels)
        else:
            # The width of a file is only that of its largest index.
            X, width = rows.X, model.estimator.n_features_in_
            if X.shape[1] < width:
                X = X.copy()
                X.resize((X.shape[0], width))
            model.partial_fit(X, rows.labels)
        n_rows += len(rows)
    return n_rows


def _has_learned(learner: RankingClassifier) -> bool:
    """Tell whether an interrupted learner can rank; one that is not online has nothing to show before it is done."""
    try:
        return isinstance(learner, OnlineClassifier) and learner.n_edges_ > 0
    except AttributeError:
        return False
