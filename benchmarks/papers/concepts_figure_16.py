"""Figure 16 of Learning When Concepts Abound: can down-weighting infrequent features improve accuracy?

python benchmarks/papers/concepts_figure_16.py DATA [--measure] [--quick]
"""

from again import switch
from beside import CONCEPTS, present

TITLE = "Figure 16: down-weighting of infrequent features"

if __name__ == "__main__":
    present(__doc__, CONCEPTS, "figure 16", "ablations", [TITLE], switch(TITLE))
