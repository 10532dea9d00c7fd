"""Figure 19 of Learning When Concepts Abound: does a higher margin keep Feature Focus from overfitting?

    python benchmarks/papers/concepts_figure_19.py DATA [--measure] [--quick]

R1 on the training rows and on held-out rows after each pass; the glosses of wordnet_hypernym are in the place of the
paper's web pages. The paper has a plot: its findings are in its text.
"""

from pathlib import Path

from beside import CONCEPTS, Recorder, Row, Verdict, figures, present

from abound import FeatureFocusClassifier
from abound.measure import recall_at_k
from tasks import text_parts

MARGINS = (0.0, 0.1, 0.5, 1.0)
PASSES = 5


def measure(recorder: Recorder, data: Path, quick: bool) -> None:
    table = recorder.table("Figure 19: training and held-out R1 by pass", "A tenth of the training rows is held out.")
    for name in ("news20", "wordnet_hypernym"):
        parts = text_parts(data, name, 1)
        task = (parts.shortened(2000) if quick else parts).validation[0]
        for margin in MARGINS:
            shown: dict[str, dict[str, float]] = {"training": {}, "held-out": {}}
            for number in range(1, PASSES + 1):
                model = FeatureFocusClassifier(margin=margin, passes=number).fit(task.X, task.y)
                for rows, X, y in (("training", task.X, task.y), ("held-out", task.X_test, task.y_test)):
                    shown[rows][f"pass {number}"] = recall_at_k(y, model.predict_topk(X, k=1).labels, 1)
            for rows, curve in shown.items():
                table.row({"data": name, "margin": margin, "rows": rows}, curve)


def judge(rows: list[Row]) -> Verdict:
    found = {(row["data"], row["margin"], row["rows"]): row for row in figures(rows)}
    last = f"pass {PASSES}"
    falls, told = [], []
    for name in ("news20", "wordnet_hypernym"):
        gaps = [found[name, margin, "training"][last] - found[name, margin, "held-out"][last] for margin in MARGINS]
        falls.append(gaps[-1] < gaps[0])
        best = max(MARGINS, key=lambda m: max(found[name, m, "held-out"][f"pass {p + 1}"] for p in range(PASSES)))
        told.append(
            f"{name}: training less held-out {gaps[0]:.3f} at margin 0, {gaps[-1]:.3f} at 1; best margin {best}"
        )
    return all(falls), "a higher margin narrows the gap between training and held-out rows (" + "; ".join(told) + ")"


if __name__ == "__main__":
    present(__doc__, CONCEPTS, "figure 19", "concepts_figure_19", ["Figure 19"], measure, judge)
