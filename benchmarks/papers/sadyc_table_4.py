"""Table 4 of Sequential Dynamic Classification: is SaDyC ahead at a ratio of 0.2 where classes are few?

    python benchmarks/papers/sadyc_table_4.py DATA [--measure] [--quick]

The 150 intents of clinc150 in the place of Sector's 105 classes, 30 classifiers a row, a pool of 300 as in the paper.
"""

from pathlib import Path
from typing import Any

from beside import SEQUENTIAL, Recorder, Row, Verdict, figures, present

PAPER = {"OAA": 0.9412, "SaDyC": 0.9267, "H-SC": 0.8852, "E-Hamming": 0.2773, "E-LossBased": 0.8955}
N_CLASSIFIERS = 300


def measure(recorder: Recorder, data: Path, quick: bool) -> None:
    import budget
    from abound import OutputCodeClassifier, SequentialClassifier
    from tasks import text_task

    task = text_task(data, "clinc150")
    task = task.shortened(1500) if quick else task
    n_bits = round(budget.RATIO * len(set(task.y.tolist())))
    table = recorder.table("Table 4: accuracy at a complexity ratio of 0.2", "clinc150; all learners with C = 1.")
    made: dict[str, Any] = {
        "SaDyC": SequentialClassifier(n_classifiers=N_CLASSIFIERS),
        "E-Hamming": OutputCodeClassifier(n_bits=n_bits),
        "E-LossBased": OutputCodeClassifier(n_bits=n_bits),
    }
    for name, paper in PAPER.items():
        method = budget.METHODS[name]
        model = made.get(name) or method.make(None)
        found = method.answer(model.set_params(n_jobs=2).fit(task.X, task.y), task, 2)
        shown = {"ratio": found.ratio, "accuracy": budget.share_right(found.predicted, task)}
        table.row({"method": name}, shown, {"accuracy": paper})


def judge(rows: list[Row]) -> Verdict:
    found = {row["method"]: row["accuracy"] for row in figures(rows)}
    rivals = max(found[name] for name in ("H-SC", "E-Hamming", "E-LossBased"))
    told = ", ".join(f"{name} {value:.4f}" for name, value in found.items())
    return found["OAA"] >= found["SaDyC"] > rivals, f"SaDyC is below one-vs-all alone ({told})"


if __name__ == "__main__":
    present(__doc__, SEQUENTIAL, "table 4", "sadyc_table_4", ["Table 4"], measure, judge)
