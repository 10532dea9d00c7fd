"""Learn: the estimators, one file each, and the kernels of their families."""
