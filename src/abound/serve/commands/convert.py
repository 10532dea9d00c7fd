"""``abound convert``: vectors as a file that is mapped, for data larger than memory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from abound.serve.commands.options import JsonOption, ReadOption, read_options
from abound.serve.guard import wrong_usage
from abound.serve.output import megabytes, show, write_json


def convert(
    data: Annotated[
        str, typer.Argument(metavar="DATA", help="A file of vectors, plain, gzip or zstd, or - for standard input.")
    ],
    output: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write, such as train.rows.")],
    read: ReadOption = None,
    json: JsonOption = False,
) -> None:
    """Turn a file of vectors into one that training maps instead of reading it into memory.

    The file is read in chunks, so that memory does not grow with it. All commands take FILE in the place of DATA.
    """
    import time

    from abound.read.disk_writing import convert_rows
    from abound.serve.settings import check_names, keyword_names

    options = read_options(read)
    with wrong_usage("--read"):
        check_names(options, keyword_names(convert_rows), "converting")
    if output.is_dir():
        raise IsADirectoryError(f"{output} is a folder: give the name of a file")
    if not output.absolute().parent.is_dir():
        raise FileNotFoundError(f"{output}: the folder {output.absolute().parent} does not exist")
    begin = time.perf_counter()
    n_rows, n_features = convert_rows(data, output, **options)
    seconds = time.perf_counter() - begin
    size = output.stat().st_size
    if json:
        write_json({"file": output, "bytes": size, "rows": n_rows, "features": n_features, "seconds": seconds})
        return
    show(f"{n_rows:,} rows, {n_features:,} features, {seconds:.1f} s; {output} has {megabytes(size)}")
