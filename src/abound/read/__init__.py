"""Read: files of vectors, texts and taxonomies become arrays, labels and strings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from abound.read.data import read_data
    from abound.read.datasets import Dataset, load_dataset, load_icd10
    from abound.read.disk_rows import DiskRows, open_rows
    from abound.read.disk_writing import convert_rows, write_row_chunks, write_rows
    from abound.read.documents import Documents, iter_documents, read_documents
    from abound.read.errors import FormatError
    from abound.read.formats import Vectors, iter_vectors, read_vectors, read_vectors_alike
    from abound.read.taxonomy import Taxonomy
    from abound.read.textbytes import TextBytes
    from abound.read.writing import write_documents, write_vectors

__all__ = [
    "read_data",
    "read_documents",
    "iter_documents",
    "read_vectors",
    "read_vectors_alike",
    "iter_vectors",
    "write_documents",
    "write_vectors",
    "open_rows",
    "convert_rows",
    "write_rows",
    "write_row_chunks",
    "Documents",
    "Vectors",
    "DiskRows",
    "TextBytes",
    "Taxonomy",
    "Dataset",
    "load_dataset",
    "load_icd10",
    "FormatError",
]

_HOMES = {
    "read_data": "data",
    "read_documents": "documents",
    "iter_documents": "documents",
    "Documents": "documents",
    "read_vectors": "formats",
    "read_vectors_alike": "formats",
    "iter_vectors": "formats",
    "Vectors": "formats",
    "DiskRows": "disk_rows",
    "open_rows": "disk_rows",
    "convert_rows": "disk_writing",
    "write_rows": "disk_writing",
    "write_row_chunks": "disk_writing",
    "write_documents": "writing",
    "write_vectors": "writing",
    "TextBytes": "textbytes",
    "Taxonomy": "taxonomy",
    "Dataset": "datasets",
    "load_dataset": "datasets",
    "load_icd10": "datasets",
    "FormatError": "errors",
}


def __getattr__(name: str) -> Any:
    """Import a public name at its first use, so that `import abound.read` loads no compiler."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
