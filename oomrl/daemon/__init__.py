"""The long-running service: what is due, who leads, the work itself in child processes, and how all of it is seen."""
