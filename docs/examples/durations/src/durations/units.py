"""The units, largest first."""

SECONDS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
