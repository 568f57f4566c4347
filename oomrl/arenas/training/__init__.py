"""Train a model in the arenas: teacher episodes, supervised fine-tuning, and GRPO with the arena as environment.

`environment` and `teacher` need nothing; the rest needs torch, transformers, trl and peft, in an environment of
their own (`make train-check`).
"""
