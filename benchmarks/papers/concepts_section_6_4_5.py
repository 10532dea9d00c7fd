"""Section 6.4.5 of Learning When Concepts Abound: are strong edges telling, and leaky features uninformative?

    python benchmarks/papers/concepts_section_6_4_5.py DATA [--measure] [--quick]

Edges above 0.9, and features whose weights sum to less than 0.25, after one pass of Feature Focus; of the features in
ten rows or more, three examples of each, the most frequent. The paper, on other news: about 300 strong edges; leaky are
"ago", "base", "year".
"""

from pathlib import Path
from typing import Any

import numpy as np
from beside import CONCEPTS, Recorder, Row, Verdict, figures, present

from abound import FeatureFocusClassifier
from abound.read.datasets import load_dataset
from tasks import vectorised_with

STRONG, LEAKY = 0.9, 0.25


def measure(recorder: Recorder, data: Path, quick: bool) -> None:
    table = recorder.table("Section 6.4.5: strong edges and leaky features", "One pass, margin 0.")
    for name in ("news20",) if quick else ("news20", "wordnet_hypernym", "tib_ddc"):
        dataset = load_dataset(data / name)
        vectorizer, task = vectorised_with(dataset.train, dataset.part("test"))
        task = task.shortened(4000) if quick else task
        index = FeatureFocusClassifier().fit(task.X, task.y).index_
        names = vectorizer.get_feature_names_out()
        seen: Any = np.bincount(task.X.indices, minlength=task.X.shape[1])
        heaviest = np.zeros(len(seen))
        listed = np.flatnonzero(index.degrees > 0)
        heaviest[listed] = index.weights[index.indptr[listed]]
        strong = np.flatnonzero((heaviest > STRONG) & (seen >= 10))
        leaky = np.flatnonzero((index.row_sums() < LEAKY) & (index.degrees > 0) & (seen >= 10))
        found = {
            "strong edges": int((index.weights > STRONG).sum()),
            "rows of a strong feature": float(np.median(seen[strong])) if len(strong) else 0.0,
            "strong": ", ".join(names[strong[np.argsort(-seen[strong])[:3]]]),
            "leaky features": len(leaky),
            "rows of a leaky feature": float(np.median(seen[leaky])) if len(leaky) else 0.0,
            "leaky": ", ".join(names[leaky[np.argsort(-seen[leaky])[:3]]]),
        }
        table.row({"data": name}, found)


def judge(rows: list[Row]) -> Verdict:
    found = figures(rows)
    holds = all(
        row["strong edges"] and row["rows of a leaky feature"] > row["rows of a strong feature"]
        for row in found
        if row["leaky features"]
    )
    told = "; ".join(f"{row['data']}: strong {row['strong']}; leaky {row['leaky'] or 'none'}" for row in found)
    return holds, f"there are strong edges, and leaky features are the more common words ({told})"


if __name__ == "__main__":
    present(__doc__, CONCEPTS, "section 6.4.5", "concepts_section_6_4_5", ["Section 6.4.5"], measure, judge)
