"""The five tasks, one desk each: its tools, and what its submission is worth."""
