"""Campaigns: longer measurements with a size and a seed, each writing build/campaigns/NAME.json."""
