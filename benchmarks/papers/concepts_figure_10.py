"""Figure 10 of Learning When Concepts Abound, Jane Austen: is Feature Focus as accurate and as sparse as printed?

python benchmarks/papers/concepts_figure_10.py DATA [--measure] [--quick]
"""

from again import script
from beside import CONCEPTS, present

if __name__ == "__main__":
    present(__doc__, CONCEPTS, "figure 10 (Jane Austen)", "austen", ["Jane Austen, figure 10"], script("austen"))
