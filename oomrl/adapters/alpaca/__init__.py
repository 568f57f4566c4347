"""Alpaca through alpaca-py, with our own payload models, timeouts, retries and rate limit. Sole user of that SDK."""
