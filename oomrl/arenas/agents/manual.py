"""A person, or any coding agent, as the agent: prompts go out through one function, replies come back."""

from __future__ import annotations

from collections.abc import Callable

from oomrl.arenas.agents.prompting import parse_reply, system_prompt, user_prompt
from oomrl.arenas.agents.seats import seated
from oomrl.arenas.engine import Action, Arena, Engine, Json, Observation, Policy
from oomrl.arenas.episode import AgentFailure


class ManualAgent:
    """Show each prompt through `ask` and play the reply. End of input ends the episode as a failure."""

    name = "manual"

    def __init__(self, ask: Callable[[str], str]) -> None:
        """Take a function from prompt to reply, `input` for a terminal."""
        self._ask = ask

    def start(self, arena: Arena, engine: Engine, seed: int, task: str) -> Policy:
        """Return a policy that shows the rules once (to each seat, where there are several), then observations."""
        return seated(arena, lambda rules: self._conversation(rules, task))

    def _conversation(self, arena: Arena, task: str) -> Policy:
        shown = False

        def act(observation: Observation) -> Action:
            nonlocal shown
            prompt = user_prompt(observation)
            if not shown:
                prompt = f"{system_prompt(arena, task)}\n\n{prompt}"
                shown = True
            try:
                action: Action = parse_reply(self._ask(prompt))
            except EOFError:
                raise AgentFailure("Expected a reply, was the end of input") from None
            return action

        return act

    def note(self) -> Json:
        """Keep nothing."""
        return {}
