"""Figure 2 of Sequential Dynamic Classification: do the chosen classifiers grow sparse as inference goes on?

    python benchmarks/papers/sadyc_figure_2.py DATA [--measure] [--quick]

Mean density of the classifiers that SaDyC asks, step by step, on a subset of 1,000 classes of tib_ddc, 200 test rows.
The paper has a plot: density falls from 1 along the steps.
"""

from itertools import islice
from pathlib import Path

from beside import SEQUENTIAL, Recorder, Row, Verdict, figures, present


def measure(recorder: Recorder, data: Path, quick: bool) -> None:
    import budget
    from tasks import text_task

    table = recorder.table("Figure 2: density of the classifiers asked", "Means over the test rows.")
    n_classes, n_rows = (60, 20) if quick else (budget.N_CLASSES, 200)
    task = next(islice(budget.subsets(text_task(data, budget.SET), n_classes, n_rows), 1))
    for name in ("SaDyC, sampled", "SaDyC (print), sampled"):
        method = budget.METHODS[name]
        model = method.make(None).set_params(n_jobs=2).fit(task.X, task.y)
        found = method.answer(model, task, 2)
        steps = sorted({0, *(int(share * (len(found.density) - 1)) for share in (0.05, 0.1, 0.25, 0.5, 1.0))})
        for step in steps:
            shown = {"density": float(found.density[step]), "classes left": float(found.left[step])}
            table.row({"method": name, "step": step + 1}, shown)


def judge(rows: list[Row]) -> Verdict:
    found, told, holds = figures(rows), [], []
    for name in dict.fromkeys(row["method"] for row in found):
        curve = [row["density"] for row in found if row["method"] == name]
        holds.append(curve[-1] < curve[0] / 2)
        told.append(f"{name}: from {curve[0]:.2f} to {curve[-1]:.2f}")
    return all(holds), "density falls to less than half along the steps (" + "; ".join(told) + ")"


if __name__ == "__main__":
    present(__doc__, SEQUENTIAL, "figure 2", "sadyc_figure_2", ["Figure 2"], measure, judge)
