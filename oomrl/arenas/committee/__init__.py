"""The investment committee: a portfolio manager between Research, who sells ideas, and Risk, who sells fear."""
