"""The structured text log of an episode: [START], one [STEP] a step, [END]."""

from __future__ import annotations

import json

from oomrl.arenas.episode import Episode

SUCCESS = 0.5


def structured_log(episode: Episode, backend: str = "inprocess", success_threshold: float = SUCCESS) -> str:
    """Return an episode as text lines; success means a score at or above the threshold and no failure."""
    lines = [
        f"[START] task={episode.task} env={episode.arena} model={_word(episode.agent)} "
        f"backend={_word(backend)} seed={episode.seed}"
    ]
    rewards = []
    number = 0
    for record in episode.log.records():
        if record["kind"] != "step":
            continue
        number += 1
        body = record["body"]
        seen = body["observation"]
        errors = list(seen["data"].get("errors", {}).values()) or [seen["data"].get("error")]
        error = json.dumps(errors[0]) if errors[0] else "None"
        rewards.append(f"{seen['reward']:.4f}")
        action = json.dumps(body["action"], sort_keys=True, separators=(",", ":"))
        lines.append(f"[STEP] step={number} action={action} reward={rewards[-1]} done={seen['done']} error={error}")
    success = episode.failure is None and episode.score >= success_threshold
    lines.append(f"[END] success={success} steps={number} score={episode.score:.4f} rewards=[{', '.join(rewards)}]")
    return "\n".join(lines) + "\n"


def _word(text: str) -> str:
    """Return a text without blanks, so that a line splits at blanks."""
    return "_".join(text.split()) or "none"
