"""Index: a linear many-class model as lists of classes by feature."""

from abound.index.class_index import ClassIndex

__all__ = ["ClassIndex"]
