"""Check that training works here: `python -m oomrl.arenas.training.check [--model tiny|smollm2] [--out DIR]`.

tiny proves the wiring: a random model of some hundred thousand parameters learns from lessons (its loss falls)
and runs GRPO with all arenas mixed. smollm2 is a real, weak model: after some fine-tuning its rollouts call the
tool, rewards differ and gradients are not zero. Neither becomes good in so few steps, and no figure claims it.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from oomrl.arenas.registry import QUALIFYING

NEEDED = ("torch", "transformers", "trl", "peft", "datasets", "matplotlib")


def main(arguments: list[str] | None = None) -> int:
    """Train, print figures, write them with plots; exit 0 when what must hold does, 2 without the packages."""
    parser = argparse.ArgumentParser(prog="python -m oomrl.arenas.training.check", description=__doc__)
    parser.add_argument("--model", choices=("tiny", "smollm2"), action="append", help="both by default")
    parser.add_argument("--sft-steps", type=int, default=100)
    parser.add_argument("--grpo-steps", type=int, default=6)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("build/training"))
    options = parser.parse_args(arguments)
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        sys.stdout.write(f"SKIPPED: {', '.join(missing)} not installed here; `make train-check` installs them\n")
        return 2
    results = [check(name, options) for name in options.model or ("tiny", "smollm2")]
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "check.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(json.dumps(results, indent=1) + "\n")
    return 0 if all(result["passed"] for result in results) else 1


def check(name: str, options: argparse.Namespace) -> dict[str, object]:
    """Fine-tune, then play, then say what held."""
    warnings.filterwarnings("ignore", message=".*experimental feature.*")
    import torch

    from oomrl.arenas.training.session import Session

    torch.set_num_threads(options.threads)
    tiny, out = name == "tiny", options.out / name
    first = Session(
        arenas=QUALIFYING,
        model=name,
        steps=options.sft_steps,
        batch=2 if tiny else 1,
        learning_rate=3e-3 if tiny else 1.5e-3,
        lora_rank=0 if tiny else 8,
        seed=0,
        out=out,
        length=1100,
        lesson_steps=6,
        tasks=1,
        scheduler="constant",
    )
    taught = first.sft("heuristic", range(4), keep=0.5)
    second = replace(
        first,
        model=str(out / "sft" / "model"),
        steps=options.grpo_steps,
        batch=4,
        learning_rate=1e-5,
        completion=96,
        calls=1,
        temperature=1.0 if tiny else 0.7,
    )
    played = second.grpo()
    holds = {
        "lessons: the loss falls": taught["loss"][-1] < taught["loss"][0],
        "arenas: every step ran": len(played["reward"]) == options.grpo_steps,
        "arenas: the parts of the reward are logged": bool(played["parts"]),
    }
    if not tiny:
        holds["arenas: the tool is called"] = any(frequency for frequency in played["calls"])
        holds["arenas: gradients are not zero"] = any(norm > 0 for norm in played["grad_norm"])
    return {"model": name, "sft": taught, "grpo": played, "holds": holds, "passed": all(holds.values())}


if __name__ == "__main__":
    sys.exit(main())
