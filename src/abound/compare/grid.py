"""The settings that a comparison tries for each learner, the most promising first.

Learners that take passes are measured after each of them, so that one run tries as many numbers of passes. What is not
said here has the learner's default. A learner without an entry is run once, with its defaults.
"""

from __future__ import annotations

from typing import Any

Setting = dict[str, Any]

GRID: dict[str, list[Setting]] = {
    "ff": [{"margin": 0.1, "passes": 4}, {"margin": 0.0, "passes": 4}, {"margin": 0.5, "passes": 4}],
    "ema": [{"rate": 0.03, "passes": 4}, {"rate": 0.1, "passes": 4}, {"rate": 0.3, "passes": 4}],
    "ooz": [
        {"margin": 0.02, "rate": 0.01, "passes": 6},
        {"margin": 0.002, "rate": 0.001, "passes": 6},
        {"margin": 0.5, "rate": 0.1, "passes": 6},
    ],
    "unweighted": [{"tolerance": 2, "passes": 8}],
    "pa": [{"C": 1.0, "passes": 8}, {"C": 0.1, "passes": 8}],
    "mmp": [{"passes": 8}, {"pairs": "max", "passes": 8}],
    "perceptron": [{"passes": 10}],
    "svm": [{"C": 1.0}, {"C": 3.0}, {"C": 0.3}],
    "lr": [{"C": 10.0}, {"C": 100.0}],
    "hr-svm": [{"loss": "squared_hinge", "C": 1.0}, {"loss": "squared_hinge", "C": 3.0}],
    "hr-lr": [{"C": 10.0}, {"C": 100.0}],
    "label-tree": [{"n_trees": 1}, {"n_trees": 3}],
}


def settings_of(learner: str) -> list[Setting]:
    """Return the settings to try for a learner.

    Parameters
    ----------
    learner : str
        Its short name.

    Returns
    -------
    list of dict
        At least one.

    Examples
    --------
    >>> settings_of("svm")[0], settings_of("frequency")
    ({'C': 1.0}, [{}])
    """
    return [dict(setting) for setting in GRID.get(learner, [{}])]


def needs_choosing(learner: str) -> bool:
    """Tell whether there is anything to choose for a learner.

    Parameters
    ----------
    learner : str
        Its short name.

    Returns
    -------
    bool
        False if it is run once, with its defaults.
    """
    settings = settings_of(learner)
    return len(settings) > 1 or "passes" in settings[0]
