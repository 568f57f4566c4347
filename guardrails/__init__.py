"""A gate for machine-written patches: what is judged never shares a process with its judge."""
