"""Figure 14 of Learning When Concepts Abound: does the margin matter, and may accuracy fall after the first pass?

python benchmarks/papers/concepts_figure_14.py DATA [--measure] [--quick]
"""

from again import ablation
from beside import CONCEPTS, present

if __name__ == "__main__":
    present(__doc__, CONCEPTS, "figure 14", "ablations", ["Figure 14"], ablation("margins_and_passes"))
