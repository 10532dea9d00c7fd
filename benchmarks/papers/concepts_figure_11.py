"""Figure 11 of Learning When Concepts Abound: is accuracy the same without constraints, and efficiency lost?

python benchmarks/papers/concepts_figure_11.py DATA [--measure] [--quick]
"""

from again import ablation
from beside import CONCEPTS, present

if __name__ == "__main__":
    present(__doc__, CONCEPTS, "figure 11", "ablations", ["Figure 11"], ablation("constraints"))
