"""Which learner suits the data: rules that can be read, checked against measured tables.

The table of the page "Which learner for my data?" is made of these rules; a test keeps the two in step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from abound.compare.splits import Data, compact
from abound.learn.registry import LEARNERS
from abound.read.datasets import Dataset
from abound.read.documents import Documents

MANY_CLASSES, SOME_CLASSES = 10_000, 1_000
MANY_ROWS, SOME_ROWS, FEW_ROWS_A_CLASS = 300_000, 80_000, 20
SEVERAL = 1.05
SAMPLE_ROWS = 20_000
"""Texts that are made into vectors to see how many words a row has."""


@dataclass(frozen=True)
class Traits:
    """What decides between learners.

    Parameters
    ----------
    rows : int
        Training rows.
    classes : int
        Classes of the training rows.
    nonzeros_a_row : float
        Features of a row, on average; texts count their words.
    labels_a_row : float
        Labels of a row, on average.
    rows_a_class : float
        Training rows of a class, the median.
    taxonomy : str or None
        "tree", "dag", "graph" or None.
    online : bool
        Whether the model must go on learning.
    """

    rows: int
    classes: int
    nonzeros_a_row: float
    labels_a_row: float
    rows_a_class: float
    taxonomy: str | None
    online: bool

    def to_dict(self) -> dict[str, Any]:
        """Return them by name."""
        return asdict(self)


@dataclass(frozen=True)
class Rule:
    """One rule.

    Parameters
    ----------
    when : str
        The condition for people.
    take : str
        The learner's short name.
    why : str
        The reason, with what was measured.
    holds : callable
        The condition.
    settings : mapping
        Parameters of the learner that differ from its defaults.
    """

    when: str
    take: str
    why: str
    holds: Callable[[Traits], bool]
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def shown(self) -> str:
        """The learner and its parameters for people."""
        return " ".join([self.take, *(f"{name}={value}" for name, value in self.settings.items())])

    def to_dict(self) -> dict[str, Any]:
        """Return it by name."""
        return {"when": self.when, "take": self.take, "settings": dict(self.settings), "why": self.why}


RULES: tuple[Rule, ...] = (
    Rule(
        f"the model must go on learning, and there are more than {MANY_ROWS:,} rows or {MANY_CLASSES:,} classes",
        "ff",
        "A pass takes seconds and a feature keeps at most 25 classes. Jane Austen, 650,000 rows and 14,400 classes: "
        "2.6 s a pass, R1 0.295.",
        lambda t: t.online and (t.rows > MANY_ROWS or t.classes > MANY_CLASSES),
    ),
    Rule(
        "the model must go on learning",
        "pa",
        "The most accurate online learner on every data set that we have measured it on. With average=False one "
        "correction changes the answer at once.",
        lambda t: t.online,
    ),
    Rule(
        f"more than {MANY_CLASSES:,} classes, or more than {MANY_ROWS:,} rows",
        "label-tree",
        "A row costs what the nodes on its way down a tree cost, so that ten times the classes of the same rows cost "
        "1.2 to 1.4 times the training. As accurate as PA or more, in a twelfth of its time: R1 0.320 and 0.321 on "
        "Jane Austen, 0.351 and 0.334 on subjects of titles. Three trees gain about a point for three times the "
        "training.",
        lambda t: t.classes > MANY_CLASSES or t.rows > MANY_ROWS,
    ),
    Rule(
        f"more than {SOME_CLASSES:,} classes and more than {SOME_ROWS:,} rows",
        "label-tree",
        "Three trees are at least as accurate as PA, and quicker: R1 0.769 on diagnosis phrases whose codes were not "
        "learned, PA 0.760, one tree 0.755, flat SVM 0.744.",
        lambda t: t.classes > SOME_CLASSES and t.rows > SOME_ROWS,
        {"n_trees": 3},
    ),
    Rule(
        "rows have several labels",
        "svm",
        "Each class is a problem of its own, so that a cut between labels that hold and those that do not can be "
        "learned for it: the best micro-F1 on subjects of titles, 0.273 (three trees 0.269, LR 0.265, PA 0.260).",
        lambda t: t.labels_a_row > SEVERAL,
    ),
    Rule(
        f"one label a row, and up to {SOME_CLASSES:,} classes or {SOME_ROWS:,} rows",
        "pa",
        "The best or close to it, as one small model that can go on learning: R1 0.955 on clinc150 (three trees 0.946, "
        "flat SVM 0.940), 0.932 on 20 newsgroups (0.928, 0.920), 0.517 on WordNet hypernyms (0.503, 0.486), 0.268 on "
        "TIB titles (0.264, 0.270).",
        lambda t: True,
    ),
)
"""The first one that holds names the learner to take."""

HINTS: tuple[Rule, ...] = (
    Rule(
        f"there is a taxonomy, and most classes have fewer than {FEW_ROWS_A_CLASS} rows",
        "hr-svm",
        "Classes borrow from their relatives. WordNet hypernyms: R1 0.537, the flat SVM 0.525, in 2 to 4 times its "
        "time. Diagnosis phrases whose codes were not learned: 0.794, PA 0.760.",
        lambda t: t.taxonomy is not None and t.rows_a_class < FEW_ROWS_A_CLASS and not t.online,
    ),
    Rule(
        "rows have several labels",
        "lr",
        "Better than the SVM on vectors as they come (R1 0.629 and 0.544 on bibtex, 0.280 and 0.265 on yeast genes), "
        "not on texts (0.313 and 0.328 on the thousand most frequent subjects of titles).",
        lambda t: not t.online and t.labels_a_row > SEVERAL and t.classes <= MANY_CLASSES,
    ),
    Rule(
        "all rows are at hand, and the model must not depend on their order",
        "svm",
        "Solved to the optimum, about 40 times as fast as LIBLINEAR, and small.",
        lambda t: not t.online and t.classes <= MANY_CLASSES,
    ),
    Rule(
        f"there are more than {SOME_CLASSES:,} classes, and training should take seconds",
        "label-tree",
        "Three trees train in a fraction of the time of PA, and lose up to a point and a half of R1, or nothing "
        "(diagnosis phrases). The model is larger, and a row takes longer to rank.",
        lambda t: not t.online and t.classes > SOME_CLASSES,
        {"n_trees": 3},
    ),
    Rule(
        "one small model may have to go on learning",
        "pa",
        "Close to label trees or better, and online. Test phrases of diagnosis codes: R1 0.599, three trees 0.596.",
        lambda t: t.classes <= MANY_CLASSES and t.rows <= MANY_ROWS,
    ),
    Rule(
        "an answer must come within a number of steps",
        "sadyc",
        "It can stop after any step and still answers, the better the more steps it had; training takes long.",
        lambda t: not t.online and t.classes <= MANY_CLASSES and t.rows <= MANY_ROWS,
    ),
    Rule(
        "the model must be small",
        "ooz",
        "About as accurate as PA with a quarter of its edges or fewer (WordNet hypernyms: 0.540 with 0.4 million, PA "
        "0.546 with 1.9 million); training takes longer.",
        lambda t: t.classes <= MANY_CLASSES,
    ),
    Rule(
        "you want a first answer",
        "ff",
        "The quickest to train, with hardly anything to set.",
        lambda t: True,
    ),
    Rule(
        "you want to know what guessing gives",
        "frequency",
        "It knows nothing but how often a class occurs; everything else must beat it.",
        lambda t: True,
    ),
)
"""Those that hold name learners worth trying beside it."""

COMPARED = ("frequency", "ff", "label-tree", "svm", "lr", "pa", "ooz", "hr-svm")
"""Learners that a comparison takes by itself, quick ones first; SaDyC takes part where it is named."""


def advise(traits: Traits) -> tuple[Rule, list[Rule]]:
    """Return the rule that names the learner to take, and those that name others worth trying.

    Parameters
    ----------
    traits : Traits
        Of the data.

    Returns
    -------
    Rule
        The first of `RULES` that holds.
    list of Rule
        Of `HINTS`, without learners that were named before.

    Examples
    --------
    >>> traits = Traits(98_000, 1_900, 8.0, 1.0, 18.0, "tree", online=False)
    >>> rule, hints = advise(traits)
    >>> rule.shown, [hint.take for hint in hints]
    ('label-tree n_trees=3', ['hr-svm', 'svm', 'pa', 'sadyc', 'ooz', 'ff', 'frequency'])
    """
    taken = next(rule for rule in RULES if rule.take in LEARNERS and rule.holds(traits))
    hints = [hint for hint in HINTS if hint.take in LEARNERS and hint.take != taken.take and hint.holds(traits)]
    return taken, hints


def default_learners(traits: Traits) -> tuple[str, ...]:
    """Return the learners that a comparison takes unless told otherwise: those that the rules name, but slow ones.

    Parameters
    ----------
    traits : Traits
        Of the data.

    Returns
    -------
    tuple of str
        Quick ones first.
    """
    taken, hints = advise(traits)
    named = {taken.take, *(hint.take for hint in hints)}
    return tuple(name for name in COMPARED if name in named)


def traits_of(dataset: Dataset, *, online: bool, text: dict[str, Any] | None = None) -> Traits:
    """Look at the data.

    Parameters
    ----------
    dataset : Dataset
        Its training part counts.
    online : bool
        Whether the model must go on learning.
    text : dict, optional
        Parameters of the vectoriser.

    Returns
    -------
    Traits
        For `advise`.
    """
    labels = compact(dataset.train.labels)
    return Traits(
        len(labels),
        labels.n_classes,
        _nonzeros_a_row(dataset.train, text or {}),
        len(labels.ids) / max(1, len(labels)),
        float(np.median(labels.counts)) if labels.n_classes else 0.0,
        None if dataset.taxonomy is None else dataset.taxonomy.kind,
        online,
    )


def _nonzeros_a_row(data: Data, text: dict[str, Any]) -> float:
    if not isinstance(data, Documents):
        return float(data.X.nnz / max(1, data.X.shape[0]))
    from abound.vectorise.text import TextVectorizer

    step = max(1, len(data) // SAMPLE_ROWS)
    sample = data.text_bytes.take(np.arange(0, len(data), step))
    return float(TextVectorizer(**text).fit_transform(sample).nnz / max(1, len(sample)))
