"""Section 6.4.4 of Learning When Concepts Abound: do classes with many connections tend to the top?

    python benchmarks/papers/concepts_section_6_4_4.py DATA [--measure] [--quick]

Indegrees (features with an edge to a class) after one pass of Feature Focus: of the class at each rank and of the true
class, averaged over the test rows, and of a class picked at random.
"""

from pathlib import Path

import numpy as np
from beside import CONCEPTS, Recorder, Row, Verdict, figures, present

from abound import FeatureFocusClassifier
from tasks import text_task

PAPER = {"news20": {"rank 1": 6000}}
LARGE = ("wordnet_hypernym", "tib_ddc")


def measure(recorder: Recorder, data: Path, quick: bool) -> None:
    table = recorder.table("Section 6.4.4: mean indegrees", "Feature Focus, one pass, margin 0.")
    for name in ("news20", "wordnet_hypernym") if quick else ("news20", *LARGE):
        task = text_task(data, name)
        task = task.shortened(2000) if quick else task
        model = FeatureFocusClassifier().fit(task.X, task.y)
        degrees = np.append(model.index_.indegrees, 0)
        place = {label: c for c, label in enumerate(model.classes_.tolist())}
        top = model.predict_topk(task.X_test, k=5).labels
        ids = np.array([[place.get(label, -1) for label in row] for row in top.tolist()])
        truth = np.array([place.get(label, -1) for label in task.y_test.tolist()])
        found = {f"rank {rank + 1}": float(degrees[ids[:, rank]].mean()) for rank in range(5)}
        found |= {"true class": float(degrees[truth].mean()), "any class": float(degrees[:-1].mean())}
        table.row({"data": name}, found, PAPER.get(name))


def judge(rows: list[Row]) -> Verdict:
    found = figures(rows)
    falls = all(row["rank 1"] > row["rank 5"] for row in found)
    lower = all(row["any class"] < row["rank 1"] / 2 for row in found if row["data"] in LARGE)
    told = "; ".join(
        f"{row['data']}: {row['rank 1']:,.0f} at rank 1, {row['rank 5']:,.0f} at rank 5, {row['any class']:,.0f} of any"
        for row in found
    )
    return falls and lower, f"indegrees fall with the rank, and any class has far fewer where classes are many ({told})"


if __name__ == "__main__":
    present(__doc__, CONCEPTS, "section 6.4.4", "concepts_section_6_4_4", ["Section 6.4.4"], measure, judge)
