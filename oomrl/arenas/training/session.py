"""A training session as a person starts it: a model, some arenas, one way to train, its log, plot and weights."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers

from oomrl.arenas.engine import Json
from oomrl.arenas.registry import find
from oomrl.arenas.training.models import load_model
from oomrl.arenas.training.plots import plot
from oomrl.arenas.training.teacher import Lesson, collect
from oomrl.arenas.training.trainers import Schedule, train_grpo, train_sft


@dataclass(frozen=True, slots=True)
class Session:
    """Train one model on the CPU. Its weights end in OUT/WAY/model, which a later session takes as its model.

    `model` is `tiny` (random), `smollm2`, or a folder; `completion` and `calls` bound a rollout's tokens and steps;
    `lesson_steps` cuts a teacher's episodes (None: whole episodes).
    """

    arenas: Sequence[str]
    model: str
    steps: int
    batch: int
    learning_rate: float
    lora_rank: int
    seed: int
    out: Path
    completion: int = 256
    calls: int = 4
    length: int = 3000
    lesson_steps: int | None = None
    tasks: int | None = None
    temperature: float = 1.0
    scheduler: str = "linear"

    def sft(self, teacher: str, seeds: Sequence[int], keep: float) -> Json:
        """Fine-tune on the better share of a teacher's episodes; return figures."""
        started = time.monotonic()
        lessons: list[Lesson] = []
        for name in self.arenas:
            arena = find(name)
            lessons += collect(arena, teacher, seeds, list(arena.tasks)[: self.tasks], keep, self.lesson_steps)
        transformers.set_seed(self.seed)
        model, tokenizer = load_model(self.model, [str(lesson.messages()) for lesson in lessons])
        model, log = train_sft(model, tokenizer, lessons, self._schedule(), self.out / "sft")
        losses = [entry["loss"] for entry in log if "loss" in entry]
        return self._kept("sft", model, tokenizer, log, started, lessons=len(lessons), loss=losses)

    def grpo(self) -> Json:
        """Train on the arenas' scores, rollouts of all of them mixed; return figures."""
        started = time.monotonic()
        transformers.set_seed(self.seed)
        model, tokenizer = load_model(self.model, list(self.arenas))
        model, log = train_grpo(model, tokenizer, self.arenas, self._schedule(), self.out / "grpo")
        steps = [entry for entry in log if "reward" in entry]
        return self._kept(
            "grpo",
            model,
            tokenizer,
            log,
            started,
            reward=[entry["reward"] for entry in steps],
            reward_std=[entry["reward_std"] for entry in steps],
            grad_norm=[entry["grad_norm"] for entry in steps],
            calls=[entry.get("tools/call_frequency") for entry in steps],
            parts=sorted({key for entry in steps for key in entry if key.startswith("part/")}),
        )

    def _schedule(self) -> Schedule:
        return Schedule(
            self.steps,
            self.batch,
            self.learning_rate,
            self.length,
            self.completion,
            calls=self.calls,
            lora_rank=self.lora_rank,
            seed=self.seed,
            temperature=self.temperature,
            scheduler=self.scheduler,
        )

    def _kept(
        self, way: str, model: Any, tokenizer: Any, log: list[dict[str, Any]], started: float, **figures: Any
    ) -> Json:
        """Merge adapters, write weights, log and plot, and return the figures with where these are."""
        folder = self.out / way
        trained = sum(weight.numel() for weight in model.parameters() if weight.requires_grad)
        merged = model.merge_and_unload() if self.lora_rank else model
        merged.save_pretrained(folder / "model")
        tokenizer.save_pretrained(folder / "model")
        (folder / "log.json").write_text(json.dumps(log, indent=1) + "\n", encoding="utf-8")
        plot(log, f"{way} in {', '.join(self.arenas)}", folder / "plot.png")
        return {
            "way": way,
            "model": self.model,
            "arenas": list(self.arenas),
            "parameters": sum(weight.numel() for weight in merged.parameters()),
            "trained": trained,
            "threads": torch.get_num_threads(),
            **figures,
            "seconds": round(time.monotonic() - started, 1),
            "out": str(folder),
        }
