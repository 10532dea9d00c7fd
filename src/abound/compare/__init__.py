"""Compare: one protocol for every claim."""
