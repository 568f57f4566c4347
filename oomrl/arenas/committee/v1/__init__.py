"""The committee as it was first published: closed-form prices, free signals, graders with their weaknesses.

Kept exact, so that published scores can be compared with; the second version is the one that qualifies.
"""
