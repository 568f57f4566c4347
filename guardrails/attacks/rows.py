"""What a campaign judged before: a file of lines, so that one that was stopped goes on where it was."""

from __future__ import annotations

import json
from collections import UserDict
from pathlib import Path
from typing import Any


class Rows(UserDict[str, dict[str, Any]]):
    """Hold rows by key, each written to the file as it is added."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        if path.is_file():
            self.data |= {row.pop("key"): row for row in map(json.loads, path.read_text("utf-8").splitlines())}

    def __setitem__(self, key: str, row: dict[str, Any]) -> None:
        """Add a row."""
        super().__setitem__(key, row)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"key": key, **row}) + "\n")
