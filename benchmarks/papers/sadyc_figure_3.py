"""Figure 3 of Sequential Dynamic Classification: is SaDyC the best at ratios above 0.1 on subsets of 1,000 classes?

    python benchmarks/papers/sadyc_figure_3.py DATA [--measure] [--quick]

Accuracy against the complexity ratio on subsets of 1,000 classes of tib_ddc (``budget.py``), in DMOZ's place. The paper
has a plot.
"""

from again import script
from beside import SEQUENTIAL, present
from curves import at_least

if __name__ == "__main__":
    tables = ["Accuracy against complexity ratio"]
    present(
        __doc__,
        SEQUENTIAL,
        "figure 3",
        "budget",
        tables,
        script("budget", quick=("--subsets", "1", "--steps", "accuracy", "report")),
        at_least(0.1),
    )
