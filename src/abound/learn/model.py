"""`Model`: a learner with the vectoriser, the taxonomy and the titles that belong to it, in one file."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, Self
from weakref import WeakSet

import numpy as np

from abound.learn.base import RankingClassifier, TopK
from abound.learn.online import OnlineClassifier
from abound.learn.persist import Arrays, learner_arrays, learner_from
from abound.read.taxonomy import Taxonomy
from abound.store import LazyStrings, ModelFileError, Stored, open_arrays, pack_strings, save_arrays
from abound.vectorise.saving import UntrustedPattern
from abound.vectorise.text import TextVectorizer

_LOOKING = Lock()


@dataclass(eq=False)
class Model:
    """Everything a ranking needs, from the text to the class's title.

    The same methods as a learner's, on texts if there is a vectoriser.

    Parameters
    ----------
    estimator : RankingClassifier
        A fitted learner.
    vectoriser : TextVectorizer, optional
        Turns texts into the rows that the learner knows. Models of other learners may share it: one that learns new
        words goes on with a copy.
    taxonomy : Taxonomy, optional
        Where the classes stand.
    titles : mapping of label to str, optional
        What to show for a class.

    Examples
    --------
    >>> from abound import FeatureFocusClassifier, Model, TextVectorizer
    >>> vectoriser = TextVectorizer()
    >>> X = vectoriser.fit_transform(["green tea", "black coffee", "white tea"])
    >>> model = Model(FeatureFocusClassifier().fit(X, ["tea", "coffee", "tea"]), vectoriser)
    >>> model.predict(["tea, please"]).tolist()
    ['tea']
    """

    estimator: RankingClassifier
    vectoriser: TextVectorizer | None = None
    taxonomy: Taxonomy | None = None
    titles: Mapping[Any, str] | None = None
    extra: dict[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        with _LOOKING:
            _MODELS.add(self)

    def rows(self, inputs: Any) -> Any:
        """Turn inputs into the learner's rows.

        Parameters
        ----------
        inputs : texts, or rows if there is no vectoriser
            What to rank.

        Returns
        -------
        sparse matrix or whatever was given
            Rows.
        """
        return inputs if self.vectoriser is None else self.vectoriser.transform(inputs)

    def predict(self, inputs: Any, min_confidence: float | None = None) -> Any:
        """Return the best class of each input; see `RankingClassifier.predict`.

        ``min_confidence`` goes by the model's taxonomy, whatever the learner, and by the learner's if it has none.
        """
        rows = self.rows(inputs)
        if min_confidence is None or self.taxonomy is None:
            return self.estimator.predict(rows, min_confidence=min_confidence)
        return self.estimator._predict_sure(self.estimator._rows(rows), min_confidence, self.taxonomy)

    def predict_topk(
        self,
        inputs: Any,
        k: int = 5,
        *,
        include: Iterable[Any] | None = None,
        exclude: Iterable[Any] | None = None,
        probabilities: bool = False,
    ) -> TopK:
        """Return the best k classes of each input; see `RankingClassifier.predict_topk`."""
        rows = self.rows(inputs)
        return self.estimator.predict_topk(rows, k, include=include, exclude=exclude, probabilities=probabilities)

    def explain(self, text: Any, label: Any) -> list[tuple[Any, float]]:
        """Tell which words of a text, or features of a row, speak for a class; see `RankingClassifier.explain`.

        Words that were hashed have no names and are told by number.
        """
        if self.vectoriser is None:
            return self.estimator.explain(text, label)
        parts = self.estimator.explain(self.vectoriser.transform([text]), label)
        if self.vectoriser.hashing is not None:
            return parts
        words = iter(self.vectoriser.feature_names([feature for feature, _ in parts if feature != "bias"]))
        return [(feature if feature == "bias" else next(words), value) for feature, value in parts]

    def partial_fit(self, inputs: Any, y: Any) -> Self:
        """Learn more, new words and new classes included.

        Parameters
        ----------
        inputs : texts, or rows if there is no vectoriser
            What to learn.
        y : labels
            Their labels.

        Returns
        -------
        self
            The model.
        """
        learner = self.estimator
        if not hasattr(learner, "partial_fit"):
            raise ValueError(f"the learner {learner.learner!r} is not online: train it again on all data")
        if self.vectoriser is not None:
            self._take_vectoriser()
            inputs = self.vectoriser.partial_fit(inputs).transform(inputs)
        learner.partial_fit(inputs, y)
        return self

    def _take_vectoriser(self) -> None:
        """Leave the vectoriser, before it grows, to the models of other learners, which do not know the new words."""
        with _LOOKING:
            sharing = [model for model in _MODELS if model.vectoriser is self.vectoriser]
            own = [model for model in sharing if model.estimator is self.estimator]
            if len(own) < len(sharing):
                twin = copy.deepcopy(self.vectoriser)
                for model in own:
                    model.vectoriser = twin

    @property
    def is_online(self) -> bool:
        """Whether the model can learn more: its learner is online and its state was kept."""
        learner = self.estimator
        return learner.can_learn if isinstance(learner, OnlineClassifier) else hasattr(learner, "partial_fit")

    def save(self, path: str | Path, *, keep_state: bool = True) -> None:
        """Write the model to one file, whole or not at all.

        Parameters
        ----------
        path : path
            Where to.
        keep_state : bool
            Whether to keep what an online learner needs to learn on; without it the file is smaller.
        """
        arrays, meta = learner_arrays(self.estimator, keep_state=keep_state)
        meta = {"estimator": meta}
        if self.vectoriser is not None:
            part, meta["vectoriser"] = self.vectoriser.to_arrays()
            arrays |= _prefixed("vectoriser/", part)
        if self.taxonomy is not None:
            arrays |= _prefixed("taxonomy/", self.taxonomy.to_arrays())
        if self.titles is not None:
            titles = [self.titles.get(label, "") for label in self.estimator.classes_.tolist()]
            arrays["titles/bytes"], arrays["titles/offsets"] = pack_strings(titles)
        save_arrays(path, arrays, meta, extra=self.extra)

    @classmethod
    def load(cls, path: str | Path, *, trust: bool = False) -> Model:
        """Read a model file: mapped, not copied, and checked before use.

        Parameters
        ----------
        path : path
            The file.
        trust : bool
            Whether to run what the file has of its own: a ``token_pattern`` that is not one of the common ones. Any
            regular expression runs then, and some take for ever on a short text.

        Returns
        -------
        Model
            The model.
        """
        stored = open_arrays(path)
        estimator = learner_from(stored, stored.meta.get("estimator"))
        vectoriser = _vectoriser(stored, trust)
        if vectoriser is not None and vectoriser.n_features_ != estimator.n_features_in_:
            problem = f"the vectoriser knows {vectoriser.n_features_} features, the learner {estimator.n_features_in_}"
            raise stored.fault("vectoriser", problem)
        return cls(estimator, vectoriser, _taxonomy(stored), _titles(stored, estimator), dict(stored.extra))


_MODELS: WeakSet[Model] = WeakSet()
"""The models of this process."""


def load(path: str | Path, *, trust: bool = False) -> Any:
    """Read back what was saved: a learner saved by its ``save``, or a `Model` saved with a vectoriser or taxonomy.

    Parameters
    ----------
    path : path
        The file.
    trust : bool
        Whether to run what the file has of its own; see `Model.load`.

    Returns
    -------
    RankingClassifier or Model
        Ready to rank; no file is ever unpickled.
    """
    model = Model.load(path, trust=trust)
    alone = model.vectoriser is None and model.taxonomy is None and model.titles is None
    return model.estimator if alone else model


class _Titles(Mapping[Any, str]):
    """Titles by label, decoded when they are asked for."""

    def __init__(self, estimator: RankingClassifier, titles: LazyStrings) -> None:
        self._estimator = estimator
        self._titles = titles
        self._place: dict[Any, int] = {}

    def __getitem__(self, label: Any) -> str:
        if not self._place:
            self._place = {name: i for i, name in enumerate(self._estimator.classes_.tolist()[: len(self._titles)])}
        return self._titles[self._place[label]]

    def __iter__(self) -> Any:
        return iter(self._estimator.classes_.tolist()[: len(self._titles)])

    def __len__(self) -> int:
        return len(self._titles)


def _prefixed(prefix: str, arrays: Arrays) -> Arrays:
    return {prefix + name: array for name, array in arrays.items()}


def _vectoriser(stored: Stored, trust: bool) -> TextVectorizer | None:
    section, meta = stored.section("vectoriser/"), stored.meta.get("vectoriser")
    if not len(section):
        return None
    if not isinstance(meta, dict):
        raise stored.fault("meta", "the setting 'vectoriser' is missing or of a wrong type")
    with _as_fault(stored, "vectoriser"):
        try:
            return TextVectorizer.from_arrays(section, meta, trust=trust)
        except UntrustedPattern as error:
            raise ModelFileError(stored.path, error.problem, error.remedy) from None


def _taxonomy(stored: Stored) -> Taxonomy | None:
    section = stored.section("taxonomy/")
    with _as_fault(stored, "taxonomy"):
        return Taxonomy.from_arrays(dict(section)) if len(section) else None


@contextmanager
def _as_fault(stored: Stored, part: str) -> Iterator[None]:
    """Turn what a part says about its arrays into an error that names the file."""
    try:
        yield
    except ModelFileError:
        raise
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        raise stored.fault(part, str(error)) from None


def _titles(stored: Stored, estimator: RankingClassifier) -> Mapping[Any, str] | None:
    section = stored.section("titles/")
    if not len(section):
        return None
    titles = LazyStrings(section.require("bytes", np.uint8), section.require("offsets", np.int64), "titles")
    if len(titles) != len(estimator.class_counts_):
        raise stored.fault("titles", f"{len(titles)} titles for {len(estimator.class_counts_)} classes")
    return _Titles(estimator, titles)
