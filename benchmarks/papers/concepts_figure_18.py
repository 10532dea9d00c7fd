"""Figure 18 of Learning When Concepts Abound: do classifiers help the unweighted index, and does it still lag behind?

python benchmarks/papers/concepts_figure_18.py DATA [--measure] [--quick]
"""

from again import ablation
from beside import CONCEPTS, present

if __name__ == "__main__":
    present(
        __doc__,
        CONCEPTS,
        "figure 18",
        "ablations",
        ["Figure 18: the unweighted index"],
        ablation("unweighted", passes=10),
    )
