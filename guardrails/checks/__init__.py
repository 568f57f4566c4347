"""Static checks: pure functions from bytes and the policy to findings. Nothing judged is ever imported."""
