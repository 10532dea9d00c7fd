"""The time limit of a comparison, shared among its learners.

Each learner first gets an equal share for its first setting. What is then left goes, run by run, to the learner that
has used least. Time for the test runs is set aside as soon as it is known what they will take. Experiments count with
the seconds that their rows hold, so that a comparison that was interrupted decides as one that was not.
"""

from __future__ import annotations

from collections.abc import Iterable

FIRST_SHARE = 0.5
"""Part of a learner's share that its first setting may take; the rest is for its test run."""

SLACK = 1.3
"""A test run is expected to take so many times as long as the run that its setting was chosen by."""

PATIENCE, LEAST_SECONDS = 3.0, 20.0
"""A test run may take so many times as long as expected, and this in any case, before it is ended."""


class Budget:
    """How much of the time limit has been used, and by whom.

    Parameters
    ----------
    limit : float
        Seconds in all.
    learners : iterable of str
        Who shares them.

    Examples
    --------
    >>> budget = Budget(100.0, ["ff", "pa"])
    >>> budget.first_limit(["ff", "pa"])
    25.0
    >>> budget.spend("ff", 4.0, test_expected=4.0)
    >>> round(budget.left(), 1)
    90.8
    """

    def __init__(self, limit: float, learners: Iterable[str]) -> None:
        self.limit = limit
        self.used = dict.fromkeys(learners, 0.0)
        self._tests: dict[str, float] = {}
        self._other = 0.0

    def spend(self, learner: str, seconds: float, test_expected: float | None = None) -> None:
        """Count a run to choose settings by.

        Parameters
        ----------
        learner : str
            Whose.
        seconds : float
            How long it took.
        test_expected : float, optional
            How long the run took that is the best so far: what a test run is expected to take.
        """
        self.used[learner] += seconds
        if test_expected is not None:
            self._tests[learner] = SLACK * test_expected

    def spend_otherwise(self, seconds: float) -> None:
        """Count time that is no learner's.

        Parameters
        ----------
        seconds : float
            How long it took.
        """
        self._other += seconds

    def test_done(self, learner: str, seconds: float) -> None:
        """Count a test run.

        Parameters
        ----------
        learner : str
            Whose.
        seconds : float
            How long it took.
        """
        self._other += seconds
        self._tests[learner] = seconds

    def spent(self) -> float:
        """Return the seconds used so far."""
        return self._other + sum(self.used.values())

    def left(self) -> float:
        """Return the seconds that are neither used nor set aside for one test run of each learner."""
        return self.limit - self.spent() - sum(self._tests.values())

    def first_limit(self, waiting: Iterable[str]) -> float:
        """Return how long the next learner's first run may take.

        Parameters
        ----------
        waiting : iterable of str
            The learners that have not run yet, this one included.

        Returns
        -------
        float
            Seconds.
        """
        return max(LEAST_SECONDS, FIRST_SHARE * self.left() / max(1, len(list(waiting))))

    def expected_test(self, learner: str) -> float | None:
        """Return how long a test run is expected to take.

        Parameters
        ----------
        learner : str
            Whose.

        Returns
        -------
        float or None
            None if nothing is known.
        """
        return self._tests.get(learner)

    def test_limit(self, learner: str, waiting: Iterable[str]) -> float:
        """Return how long a test run may take before it is ended.

        Parameters
        ----------
        learner : str
            Whose.
        waiting : iterable of str
            The learners that have no test run yet, this one included.

        Returns
        -------
        float
            Seconds: an equal share of what is left, or more if more is expected.
        """
        share = (self.limit - self.spent()) / max(1, len(list(waiting)))
        expected = self._tests.get(learner, 0.0)
        return max(LEAST_SECONDS, share, PATIENCE * expected)

    def splits_that_fit(self, n_splits: int) -> int:
        """Return how many splits there is time for, one of them being done.

        Parameters
        ----------
        n_splits : int
            How many are wanted.

        Returns
        -------
        int
            At least one.
        """
        one = sum(self._tests.values())
        more = (self.limit - self.spent()) / one if one > 0 else float(n_splits)
        return max(1, min(n_splits, 1 + int(more)))
