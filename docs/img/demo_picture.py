"""Draw docs/img/demo.svg, the terminal after `abound demo`: python docs/img/demo_picture.py (about a minute)."""

import os
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

WIDTH = 112
FONTS = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"


def main() -> None:
    """Run the demo and draw what it prints."""
    command = [str(Path(sys.executable).with_name("abound")), "demo"]
    settings = os.environ | {"FORCE_COLOR": "1", "COLUMNS": str(WIDTH)}
    output = subprocess.run(command, env=settings, check=True, capture_output=True, encoding="utf-8").stdout
    lines = [line.rstrip() for line in ("$ abound demo\n\n" + output.strip()).splitlines()]
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=WIDTH, file=nowhere, force_terminal=True)
        console.print(Text.from_ansi("\n".join(lines)))
        picture = console.export_svg(title="abound demo", unique_id="demo")
    # Rich's own fonts come from elsewhere; the picture must not need the network.
    picture = re.sub(r"\s*@font-face \{.*?\}", "", picture, flags=re.DOTALL)
    picture = re.sub(r"font-family: ?(Fira Code|arial)[^;]*;", f"font-family: {FONTS};", picture)
    Path(__file__).with_name("demo.svg").write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
