"""Experiments side by side: each in a worker of a cluster, which starts a process for it as this machine would."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import NamedTuple

from abound.compare.experiment import Experiment, Row
from abound.compare.launch import Limits, run
from abound.compare.prepared import Prepared, save


class Task(NamedTuple):
    """An experiment and what it may take."""

    experiment: Experiment
    limits: Limits


def run_elsewhere(task: Task, prepared: Prepared) -> Row:
    """Run an experiment in a worker, with files of its own.

    Parameters
    ----------
    task : Task
        The experiment.
    prepared : Prepared
        Its rows.

    Returns
    -------
    dict
        The row.
    """
    with tempfile.TemporaryDirectory(prefix="abound-compare-", ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch, "prepared")
        folder.mkdir()
        save(prepared, folder)
        return run(task.experiment, folder, prepared.facts, task.limits, Path(scratch))
