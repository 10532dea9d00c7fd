"""Figure 12 of Learning When Concepts Abound: may fewer edges a feature than 25 be as accurate or more?

python benchmarks/papers/concepts_figure_12.py DATA [--measure] [--quick]
"""

from again import ablation
from beside import CONCEPTS, present

if __name__ == "__main__":
    present(__doc__, CONCEPTS, "figure 12", "ablations", ["Figure 12"], ablation("degrees"))
