"""OOM-RL: a trading alignment loop in which lost money is the only training signal."""
