"""Supervised fine-tuning and GRPO over the arenas, by TRL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from datasets import Dataset
from peft import LoraConfig
from trl import GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer

from oomrl.arenas.registry import find
from oomrl.arenas.training.environment import FACTORIES
from oomrl.arenas.training.teacher import TOOL, Lesson, brief
from oomrl.errors import Mistake


@dataclass(frozen=True, slots=True)
class Schedule:
    """How long and how large: steps, rows a step, learning rate, lengths in tokens, LoRA rank (0: none).

    `temperature` is that of the rollouts; `scheduler` names how the learning rate falls (transformers' names).
    """

    steps: int
    batch: int = 4
    learning_rate: float = 1e-4
    length: int = 2048
    completion: int = 256
    generations: int = 4
    calls: int = 4
    lora_rank: int = 0
    seed: int = 0
    temperature: float = 1.0
    scheduler: str = "linear"


def _lora(schedule: Schedule) -> LoraConfig | None:
    if not schedule.lora_rank:
        return None
    return LoraConfig(r=schedule.lora_rank, target_modules="all-linear", task_type="CAUSAL_LM")


def _common(schedule: Schedule, out: Path) -> dict[str, Any]:
    return {
        "output_dir": str(out),
        "max_steps": schedule.steps,
        "per_device_train_batch_size": schedule.batch,
        "learning_rate": schedule.learning_rate,
        "lr_scheduler_type": schedule.scheduler,
        "logging_steps": 1,
        "save_strategy": "no",
        "report_to": [],
        "use_cpu": True,
        "bf16": False,
        "seed": schedule.seed,
        "gradient_checkpointing": False,
        "disable_tqdm": True,
    }


def train_sft(
    model: Any, tokenizer: Any, lessons: Sequence[Lesson], schedule: Schedule, out: Path
) -> tuple[Any, list[dict[str, Any]]]:
    """Fine-tune on lessons; return the model and the log, one entry a step with `loss`.

    What was seen is context: the loss counts the teacher's calls alone. A lesson that does not fit into
    `schedule.length` is left out: cut, it would lose the action that it teaches.
    """
    chats = [lesson.messages() for lesson in lessons]
    rows = [{"prompt": chat[:-1], "completion": chat[-1:], "tools": [TOOL]} for chat in chats]
    rows = [row for row in rows if _tokens(tokenizer, row) <= schedule.length]
    if not rows:
        raise Mistake(f"Expected lessons of at most {schedule.length} tokens, were none")
    trainer = SFTTrainer(
        model=model,
        args=SFTConfig(**_common(schedule, out), max_length=schedule.length, completion_only_loss=True),
        train_dataset=Dataset.from_list(rows),
        processing_class=tokenizer,
        peft_config=_lora(schedule),
    )
    trainer.train()
    return trainer.model, list(trainer.state.log_history)


def _tokens(tokenizer: Any, row: dict[str, Any]) -> int:
    text = tokenizer.apply_chat_template(row["prompt"] + row["completion"], tools=row["tools"], tokenize=False)
    return len(tokenizer(text)["input_ids"])


VALID_WEIGHT = 0.2


def valid_calls(environments: Sequence[Any], log_metric: Callable[[str, float], None], **_: Any) -> list[float]:
    """Return the share of accepted calls of each rollout: a small reward for speaking the arena's grammar.

    Logs the mean of each part of the arenas' scores, so that a plot shows what a model learns to be paid for.
    """
    parts: dict[str, list[float]] = {}
    for environment in environments:
        for name, value in environment._parts().items():
            parts.setdefault(f"part/{environment._arena}/{name}", []).append(value)
    for name, values in parts.items():
        log_metric(name, fmean(values))
    return [environment._valid_share() for environment in environments]


def train_grpo(
    model: Any, tokenizer: Any, arenas: Sequence[str], schedule: Schedule, out: Path
) -> tuple[Any, list[dict[str, Any]]]:
    """Train on the arenas' scores, rollouts mixed; return the model and the log with each reward's mean."""
    rows = []
    for index in range(max(schedule.steps * schedule.batch, 8)):
        name = arenas[index % len(arenas)]
        tasks = list(find(name).tasks)
        task = tasks[(index // len(arenas)) % len(tasks)]
        prompt = [{"role": "user", "content": brief(name, task) + "\n"}]
        rows.append({"prompt": prompt, "environment": name, "task": task, "seed": index})
    trainer = GRPOTrainer(
        model=model,
        reward_funcs=valid_calls,
        args=GRPOConfig(
            **_common(schedule, out),
            num_generations=schedule.generations,
            max_completion_length=schedule.completion,
            max_tool_calling_iterations=schedule.calls,
            reward_weights=[VALID_WEIGHT],
            temperature=schedule.temperature,
        ),
        train_dataset=Dataset.from_list(rows),
        processing_class=tokenizer,
        environment_factory={name: FACTORIES[name] for name in arenas},
        peft_config=_lora(schedule),
    )
    trainer.train()
    return trainer.model, list(trainer.state.log_history)
