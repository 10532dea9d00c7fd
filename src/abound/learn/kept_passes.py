"""An online learner's checkpoint: what it knew after its last finished pass."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from abound.learn.checkpoint import is_whole, keep_value, read_value
from abound.learn.checkpoint_run import claim_folder
from abound.store import Section

if TYPE_CHECKING:
    from abound.learn.online import Examples, OnlineClassifier

PASS_FILE = "pass"
"""Replaced after each pass."""


class KeptPasses:
    """Keeps what a learner knows after each pass of `fit`, if it has a checkpoint.

    Parameters
    ----------
    learner : OnlineClassifier
        About to begin its first pass.
    examples : Examples
        What it learns from.
    """

    def __init__(self, learner: OnlineClassifier, examples: Examples) -> None:
        self._path: Path | None = None
        if learner.checkpoint is not None:
            folder = claim_folder(learner, examples.rows, examples.labels, examples.weights)
            self._path = folder / PASS_FILE

    def restore(self, learner: OnlineClassifier, generator: np.random.Generator) -> tuple[int, bool]:
        """Put a learner where an earlier run left it.

        Parameters
        ----------
        learner : OnlineClassifier
            Knows nothing yet.
        generator : Generator
            Draws on as it would have.

        Returns
        -------
        tuple of int and bool
            How many passes are done, and whether they are enough.
        """
        if self._path is None or not is_whole(self._path):
            return 0, False
        kept = read_value(self._path)
        learner._state = learner._resumed(Section(self._path, "", dict(sorted(kept["state"].items()))))
        learner.history_ = kept["history"]
        for name, value in kept["more"].items():
            setattr(learner, name, value)
        generator.bit_generator.state = kept["generator"]
        return len(learner.history_), kept["enough"]

    def keep(self, learner: OnlineClassifier, generator: np.random.Generator, enough: bool) -> None:
        """Write what a learner knows.

        Parameters
        ----------
        learner : OnlineClassifier
            After a pass.
        generator : Generator
            As it is then.
        enough : bool
            Whether it was the last pass.
        """
        if self._path is None:
            return
        more: dict[str, Any] = {
            name: learner.__dict__[name] for name in ("_extra", "_best") if name in learner.__dict__
        }
        keep_value(
            self._path,
            {
                "state": learner._kept(),
                "history": learner.history_,
                "more": more,
                "generator": _plain(generator.bit_generator.state),
                "enough": enough,
            },
        )


def _plain(state: Any) -> Any:
    """A generator's state without arrays, whose unsigned numbers a file of arrays does not hold."""
    if isinstance(state, dict):
        return {name: _plain(value) for name, value in state.items()}
    return state.tolist() if isinstance(state, np.ndarray) else state
