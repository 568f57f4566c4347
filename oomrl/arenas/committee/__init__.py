"""The investment committee: a manager between Research, who sells ideas, and Risk, who sells fear."""
