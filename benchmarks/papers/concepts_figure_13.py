"""Figure 13 of Learning When Concepts Abound: is a least weight of 0.1 too high, and 0.001 no better than 0.01?

python benchmarks/papers/concepts_figure_13.py DATA [--measure] [--quick]
"""

from again import ablation
from beside import CONCEPTS, present

if __name__ == "__main__":
    present(__doc__, CONCEPTS, "figure 13", "ablations", ["Figure 13"], ablation("least_weights"))
