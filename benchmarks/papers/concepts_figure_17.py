"""Figure 17 of Learning When Concepts Abound: does Feature Focus on Boolean rows beat IND, and do feature values help?

python benchmarks/papers/concepts_figure_17.py DATA [--measure] [--quick]
"""

from again import ablation
from beside import CONCEPTS, present

if __name__ == "__main__":
    present(
        __doc__,
        CONCEPTS,
        "figure 17",
        "ablations",
        ["Figure 17"],
        ablation("boolean_and_independent", texts_only=True),
    )
