"""Is the learner that the chooser names among the best, with no parameter set?

    python benchmarks/chooser.py DATA [--sets news20 clinc150] [--quick]

A part of the training rows is held out; the test rows stay unseen. Diagnosis phrases are held out with all phrases of
their five-character code, since those of one code are near copies of each other. Of yso_finna_en, the thousand most
frequent subjects and 30,000 rows are taken. Parameters are those that the chooser names with a learner, else the
defaults; texts are words.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from abound.compare.choose import advise, traits_of
from abound.compare.measuring import measure
from abound.compare.prepared import prepare
from abound.compare.splits import Halves
from abound.labels import Labels
from abound.measure import repeated_splits
from abound.read.datasets import Dataset, load_dataset, load_icd10
from record import Recorder

SETS = ("clinc150", "news20", "icd10", "wordnet_hypernym", "tib_ddc", "bibtex", "yeast_cellcycle_go", "yso_finna_en")
LEARNERS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("pa", {}),
    ("svm", {}),
    ("lr", {}),
    ("label-tree", {}),
    ("label-tree", {"n_trees": 3}),
    ("hr-svm", {}),
)
NEARLY = 0.01
SLOW_LR, SLOW_HR = 1000, 4000
"""Classes beyond which a learner is left out: it takes too long."""


def codes_of(dataset: Dataset) -> Any:
    """The five-character code of each diagnosis phrase."""
    import simple_icd_10_cm as codes

    listed = [code for code in dict.fromkeys(codes.get_all_codes(True)) if codes.is_category_or_subcategory(code)]
    if len(listed) != len(dataset.train):
        raise ValueError("the phrases are not one a code")
    return [code[:5] for code in listed]


def read(data: Path, name: str) -> Dataset:
    """Read a data set; of yso_finna_en, 30,000 rows that have one of its thousand most frequent subjects."""
    if name == "icd10":
        return load_icd10()
    dataset = load_dataset(data / name)
    if name != "yso_finna_en":
        return dataset
    labels = dataset.train.labels
    frequent = np.isin(labels.ids, np.argsort(-labels.counts, kind="stable")[:1000])
    of_row = np.repeat(np.arange(len(labels)), np.diff(labels.indptr))
    kept = np.bincount(of_row[frequent], minlength=len(labels))
    indptr = np.concatenate(([0], np.cumsum(kept)))
    train = replace(dataset.train, labels=Labels(indptr, labels.ids[frequent], labels.classes, labels.kind))
    rows = np.random.default_rng(0).permutation(np.flatnonzero(kept))[:30_000]
    return replace(dataset, train=train.take(np.sort(rows)))


def shown_rule(learner: str, parameters: Mapping[str, Any]) -> str:
    """A learner and its parameters for people."""
    return " ".join([learner, *(f"{name}={value}" for name, value in parameters.items())])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--sets", nargs="+", default=SETS, metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="two small sets; nothing is recorded")
    arguments = parser.parse_args()
    recorder = Recorder("chooser", __doc__, arguments.data, keep=not arguments.quick)
    for name in ("clinc150", "bibtex") if arguments.quick else arguments.sets:
        dataset = read(arguments.data, name)
        groups = codes_of(dataset) if name == "icd10" else None
        n_rows = len(dataset.train)
        fit, held = next(repeated_splits(n_rows, 1, 0.1 if n_rows >= 5000 else 0.2, 1, groups))
        rows = prepare(Halves(dataset.train.take(fit), dataset.train.take(held)), {}, dataset.taxonomy, 1)
        taken, _ = advise(traits_of(dataset, online=False))
        note = f"{len(fit):,} training rows to learn from, {len(held):,} held out, {rows.facts.classes:,} classes."
        table = recorder.table("The chooser's learner beside others", note)
        found: dict[str, float] = {}
        for learner, parameters in LEARNERS:
            slow = rows.facts.classes > (SLOW_LR if learner == "lr" else SLOW_HR)
            if (slow and learner in ("lr", "hr-svm")) or (learner == "hr-svm" and rows.taxonomy is None):
                continue
            row = measure(rows, learner, parameters, seed=0, jobs=1, for_test=True)
            shown = shown_rule(learner, parameters)
            found[shown] = row["measures"]["R1"]
            is_taken = shown == shown_rule(taken.take, taken.settings)
            figures = {name: row["measures"][name] for name in ("R1", "R5", "micro_f1", "macro_f1")}
            seconds = {"training s": row["timings"]["train"], "ranking s": row["timings"]["rank"]}
            table.row({"data": name, "learner": shown + " (named)" * is_taken}, {**figures, **seconds})
        named = shown_rule(taken.take, taken.settings)
        best = max(found.values())
        what = f"{name}: {named} is within {NEARLY} of the best R1 ({found[named]:.3f}, {best:.3f})"
        table.target(bool(np.round(best - found[named], 4) <= NEARLY), what, data=name)


if __name__ == "__main__":
    main()
