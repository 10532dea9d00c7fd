"""The only place that knows of threads, processes and clusters: independent parts of work go through here.

Results come back in the order of the parts, whatever order they finish in, so neither the number of workers nor where
they run shows in a result.
"""

from abound.distribute.choice import check_cluster, workers
from abound.distribute.local import Serial, Threads, count_workers
from abound.distribute.parts import TASK_VALUES, Workers, bundles, spans
from abound.distribute.room import Spare

__all__ = [
    "Serial",
    "Spare",
    "TASK_VALUES",
    "Threads",
    "Workers",
    "bundles",
    "check_cluster",
    "count_workers",
    "spans",
    "workers",
]
