"""Check that training works here: `python -m oomrl.arenas.training.check [--model tiny|smollm2] [--out DIR]`.

tiny proves the wiring: a random model of some hundred thousand parameters learns from lessons (its loss falls)
and runs GRPO with two arenas mixed. smollm2 is a real, weak model: after some fine-tuning its rollouts call the
tool, rewards differ and gradients are not zero. Neither becomes good in so few steps, and no figure claims it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

ARENAS = ("committee", "organization")


def main(arguments: list[str] | None = None) -> int:
    """Train, print figures, write them with plots; exit 0 when what must hold does, 2 without the packages."""
    parser = argparse.ArgumentParser(prog="python -m oomrl.arenas.training.check")
    parser.add_argument("--model", choices=("tiny", "smollm2"), default="tiny")
    parser.add_argument("--sft-steps", type=int, default=12)
    parser.add_argument("--grpo-steps", type=int, default=2)
    parser.add_argument("--completion", type=int, default=96)
    parser.add_argument("--lora-rank", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("build/training"))
    options = parser.parse_args(arguments)
    try:
        import torch
        import transformers
        import trl  # noqa: F401
    except ImportError as problem:
        sys.stdout.write(f"SKIPPED: {problem.name} is not installed here; `make train-check` installs it\n")
        return 2
    from oomrl.arenas.registry import find
    from oomrl.arenas.training.models import smollm2, tiny_model
    from oomrl.arenas.training.plots import plot
    from oomrl.arenas.training.teacher import collect
    from oomrl.arenas.training.trainers import Schedule, train_grpo, train_sft

    torch.set_num_threads(options.threads)
    transformers.set_seed(0)
    started = time.monotonic()
    lessons = []
    for name in ARENAS:
        arena = find(name)
        lessons += collect(arena, "heuristic", range(4), list(arena.tasks)[:1], steps=6)
    tiny = options.model == "tiny"
    model, tokenizer = tiny_model([str(lesson.messages()) for lesson in lessons]) if tiny else smollm2()
    rate = 3e-3 if tiny else 2e-4
    sft = Schedule(options.sft_steps, batch=2, learning_rate=rate, length=3000, lora_rank=options.lora_rank)
    model, taught = train_sft(model, tokenizer, lessons, sft, options.out / "sft")
    if options.lora_rank:
        model = model.merge_and_unload()
    grpo = Schedule(options.grpo_steps, batch=4, learning_rate=1e-5, completion=options.completion, calls=2)
    model, played = train_grpo(model, tokenizer, ARENAS, grpo, options.out / "grpo")
    losses = [entry["loss"] for entry in taught if "loss" in entry]
    steps = [entry for entry in played if "reward" in entry]
    record = {
        "model": options.model,
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "lessons": len(lessons),
        "sft_loss": losses,
        "grpo": [
            {
                "reward": entry["reward"],
                "reward_std": entry["reward_std"],
                "grad_norm": entry["grad_norm"],
                "call_frequency": entry.get("tools/call_frequency"),
            }
            for entry in steps
        ],
        "seconds": round(time.monotonic() - started, 1),
    }
    learned = len(losses) > 1 and losses[-1] < losses[0]
    ran = len(steps) == options.grpo_steps
    moved = tiny or any(entry["grad_norm"] > 0 for entry in steps)
    record["passed"] = learned and ran and moved
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / f"{options.model}.json").write_text(json.dumps(record, indent=1) + "\n")
    plot(taught, f"{options.model}: lessons", options.out / f"{options.model}-sft.png")
    plot(played, f"{options.model}: arenas", options.out / f"{options.model}-grpo.png")
    sys.stdout.write(json.dumps(record, indent=1) + "\n")
    return 0 if record["passed"] else 1


if __name__ == "__main__":
    sys.exit(main())
