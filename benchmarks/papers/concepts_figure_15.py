"""Figure 15 of Learning When Concepts Abound: can letting dropped weight leak improve accuracy?

python benchmarks/papers/concepts_figure_15.py DATA [--measure] [--quick]
"""

from again import switch
from beside import CONCEPTS, present

TITLE = "Figure 15: weight leaks"

if __name__ == "__main__":
    present(__doc__, CONCEPTS, "figure 15", "ablations", [TITLE], switch(TITLE))
