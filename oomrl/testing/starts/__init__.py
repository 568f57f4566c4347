"""Bad starts for honest scoring: phase 1 of the paper as a patch, and faults planted from a seed."""

from oomrl.testing.starts.generator import KINDS, BadStart, generate

__all__ = ["KINDS", "BadStart", "generate"]
