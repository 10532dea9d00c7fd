"""Other packages on the same rows: one adapter each, run in a process of its own by ``against_peers.py``.

An adapter is a module with

- ``PACKAGE``, the name it imports when it is asked to train, and not before;
- ``FILES``, the files it reads beside the matrices (see `peers.files`);
- ``SYSTEMS``, a grid of settings by the name of each system; the first setting counts where time allows no choice;
- ``train(files, setting, threads)``, which returns the seconds of training and a function that ranks the test rows.

Adapters use numpy and scipy alone beside their package, because their interpreter need not have abound.
"""

ADAPTERS = ("ours", "sklearn", "liblinear", "fasttext", "vowpalwabbit", "omikuji", "napkinxc", "pecos")
OURS = "ours"
