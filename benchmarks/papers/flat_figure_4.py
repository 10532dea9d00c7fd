"""Figure 4 of Flat Techniques: does PA level off in accuracy and tree loss, and do 30% of its weights suffice?

    python benchmarks/papers/flat_figure_4.py DATA [--measure] [--quick]

Part (a): R1 and tree loss of PA-II as printed after each pass, on the test rows, as in the paper. Part (b): R1 when
only the heaviest weights are kept (``prototypes.py`` has more of it). The paper has plots, on web pages: accuracy gains
most in the first three passes and levels off after seven; 30% of the weights do not hurt, fewer soon do.
"""

from pathlib import Path

from beside import FLAT, Recorder, Row, Verdict, figures, present

from abound import CommitteeClassifier, PAClassifier
from abound.measure import recall_at_k, tree_loss
from abound.read.datasets import load_dataset
from tasks import text_parts

PASSES = tuple(range(1, 11))
SHARES = (1.0, 0.5, 0.3, 0.1, 0.05)
SETS = ("wordnet_hypernym", "tib_ddc")


def measure(recorder: Recorder, data: Path, quick: bool) -> None:
    table = recorder.table("Figure 4: passes and fewer weights", "PA-II as printed, all passes of one run; test rows.")
    for name in SETS[:1] if quick else SETS:
        parts = text_parts(data, name, 1)
        task = (parts.shortened(1500) if quick else parts).final
        taxonomy = load_dataset(data / name).taxonomy
        learner = PAClassifier(step="paper", average=False)
        run = CommitteeClassifier(learner, n_seeds=1, keep_passes=PASSES, n_jobs=2).fit(task.X, task.y)
        for number, model in zip(PASSES, run._members, strict=True):
            best = model.predict_topk(task.X_test, k=1).labels
            found = {"R1": recall_at_k(task.y_test, best, 1), "tree loss": tree_loss(task.y_test, best[:, 0], taxonomy)}
            table.row({"data": name, "passes": number, "share": 1.0}, found)
        for share in SHARES[1:]:
            lighter = model._pruned(max_edges=int(share * model.index_.n_edges))
            R1 = recall_at_k(task.y_test, lighter.predict_topk(task.X_test, k=1).labels, 1)
            table.row({"data": name, "passes": PASSES[-1], "share": share}, {"R1": R1})


def judge(rows: list[Row]) -> Verdict:
    found, told, holds = figures(rows), [], []
    for name in dict.fromkeys(row["data"] for row in found):
        by_pass = [row["R1"] for row in found if row["data"] == name and row["share"] == 1.0]
        by_share = {row["share"]: row["R1"] for row in found if row["data"] == name and row["passes"] == PASSES[-1]}
        early, late = by_pass[2] - by_pass[0], max(by_pass) - by_pass[2]
        lost = by_share[1.0] - by_share[0.3]
        holds.append(early > late and lost <= 0.005)
        told.append(f"{name}: {early:+.3f} to pass 3, {late:+.3f} later; 30% of the weights lose {lost:.4f}")
    return all(holds), "accuracy gains most in three passes, and 30% of the weights suffice (" + "; ".join(told) + ")"


if __name__ == "__main__":
    present(__doc__, FLAT, "figure 4", "flat_figure_4", ["Figure 4"], measure, judge)
