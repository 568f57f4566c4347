"""The research arena: find a signal in a panel without fooling oneself."""
