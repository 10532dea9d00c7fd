"""The model file: named arrays and JSON settings in one safetensors file, mapped on load and verified before use.

Only arrays are known here, no estimator. ``docs/model-file.md`` is the specification.
"""

from abound.store.check import check_csr, check_ids, check_indptr, check_numbers
from abound.store.errors import ModelFileError
from abound.store.packed_labels import LazyLabels, lazy_labels, pack_labels, unpack_labels
from abound.store.stored import Section, Stored, open_arrays
from abound.store.strings import LazyStrings, pack_strings
from abound.store.write import replacing, save_arrays

__all__ = [
    "save_arrays",
    "open_arrays",
    "Stored",
    "Section",
    "ModelFileError",
    "check_csr",
    "check_indptr",
    "check_ids",
    "check_numbers",
    "pack_strings",
    "LazyStrings",
    "pack_labels",
    "unpack_labels",
    "lazy_labels",
    "LazyLabels",
    "replacing",
]
