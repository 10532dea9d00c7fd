"""How long does a PA-II pass take at the papers' size, and how much memory?

    python benchmarks/pa_pass.py [--jobs 2] [--passes 3] [--quick]

108,000 generated rows, 124 non-zeros a row, 12,000 classes, 350,000 features. The papers report 12 to 35 hours a pass
for 120,000 documents and 12,000 classes. R1 is on another 10,000 rows made by the same rule.
"""

from __future__ import annotations

import argparse
import resource
import time

from abound import PAClassifier
from abound.measure import recall_at_k
from generated import documents
from record import Recorder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    arguments = parser.parse_args()
    recorder = Recorder("pa_pass", __doc__, keep=not arguments.quick)
    n_rows = 10_800 if arguments.quick else 108_000
    X, y = documents(n_rows + 10_000)
    X, y, X_test, y_test = X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]
    PAClassifier(passes=1, n_jobs=arguments.jobs).fit(X[:500], y[:500]).predict_topk(X_test[:10])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    note = "Seconds of each pass as the learner's history has them; averages are added up in between (fit seconds)."
    table = recorder.table(f"PA-II, {X.shape[0]:,} rows, {arguments.jobs} threads", note)
    for passes in range(1, arguments.passes + 1):
        begin = time.perf_counter()
        model = PAClassifier(passes=passes, n_jobs=arguments.jobs).fit(X, y)
        seconds = time.perf_counter() - begin
        labels = model.predict_topk(X_test, k=5).labels
        last = model.history_[-1]
        figures = {
            "pass seconds": last["seconds"],
            "fit seconds": seconds,
            "edges": model.n_edges_,
            "updates": last["updates"],
            "R1": recall_at_k(y_test, labels, 1),
            "peak GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
        }
        table.row({"pass": passes, "threads": arguments.jobs}, figures)
    table.finding(model.history_[0]["seconds"] <= 10, "one pass takes at most 10 s on 2 cores")
    print(f"  peak before training {before / 1e6:.2f} GB")


if __name__ == "__main__":
    main()
