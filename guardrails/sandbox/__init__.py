"""Run untrusted code so that it can compute and answer, and nothing else."""

from guardrails.sandbox.launch import Limits, Process, Sandbox, SandboxError

__all__ = ["Limits", "Process", "Sandbox", "SandboxError"]
