"""The stationary bootstrap of Politis and Romano (1994): blocks of geometric length from a circle of observations.

It keeps what neighbouring sessions share (clustered volatility, short memory) and the pairing of series that are
resampled with the same indices. Every use states the mean block length and the seed; the default length is
max(2, round(1.75 n^(1/3))) sessions, the usual n^(1/3) rate with room for clustered volatility.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from oomrl.domain.market import Floats
from oomrl.domain.trading import Ints

#: Resamples are made in chunks of about this many numbers, which stay in the processor's cache.
CHUNK = 1 << 18


def block_length(sessions: int) -> int:
    """Return the default mean block length for a number of sessions."""
    return max(2, round(1.75 * math.cbrt(sessions)))


def index_chunks(sessions: int, resamples: int, block: float, rng: np.random.Generator) -> Iterator[Ints]:
    """Yield int64 arrays of shape (rows, sessions) whose rows add up to `resamples`: which session stands where."""
    if sessions < 1 or block < 1:
        raise ValueError(f"Expected at least one session and a block of at least 1, was {sessions} and {block}")
    rows = max(1, CHUNK // sessions)
    steps = np.arange(sessions, dtype=np.int64)
    for done in range(0, resamples, rows):
        count = min(rows, resamples - done)
        begins = rng.random((count, sessions)) < 1.0 / block
        begins[:, 0] = True
        where = np.flatnonzero(begins)
        starts = rng.integers(0, sessions, len(where)) - where % sessions
        lengths = np.diff(np.append(where, count * sessions))
        offset = np.repeat(starts, lengths).reshape(count, sessions)
        yield (offset + steps) % sessions


def counts(rows: Ints) -> Floats:
    """Return how often each session stands in each row, float64 of the same shape.

    Sums over a resample are then one matrix product, whatever the number of series.
    """
    resamples, sessions = rows.shape
    flat = (rows + np.arange(0, resamples * sessions, sessions)[:, None]).ravel()
    return np.bincount(flat, minlength=resamples * sessions).reshape(rows.shape).astype(np.float64)


def sums(values: Floats, resamples: int, block: float, rng: np.random.Generator) -> Floats:
    """Return the sums of k series over each resample: (resamples, k) for values of shape (sessions, k).

    The same bootstrap by prefix sums over whole blocks: cheap enough for the many resamples of a small p-value.
    """
    sessions, series = values.shape
    doubled = np.concatenate([np.zeros((1, series)), np.cumsum(np.concatenate([values, values]), axis=0)])
    most = int(sessions / block + 8 * np.sqrt(sessions / block) + 16)
    out = np.empty((resamples, series))
    rows = max(1, CHUNK // most)
    for done in range(0, resamples, rows):
        count = min(rows, resamples - done)
        lengths = rng.geometric(1.0 / block, (count, most))
        ends = np.minimum(np.cumsum(lengths, axis=1), sessions)
        while int(ends[:, -1].min()) < sessions:
            more = rng.geometric(1.0 / block, (count, most))
            ends = np.concatenate([ends, np.minimum(ends[:, -1:] + np.cumsum(more, axis=1), sessions)], axis=1)
        taken = np.diff(ends, axis=1, prepend=0)
        starts = rng.integers(0, sessions, ends.shape)
        for column in range(series):
            path = doubled[:, column]
            out[done : done + count, column] = (path[starts + taken] - path[starts]).sum(axis=1)
    return out


def mean_error(values: Floats, block: float) -> float:
    """Return the standard error of the mean of values (sessions,) under the bootstrap with endlessly many resamples.

    Politis and Romano (1994), eq. 9: var = (1 / n) sum_k b_k c_k over circular autocovariances c_k, with
    b_k = (1 - k/n)(1 - p)^k + (k/n)(1 - p)^(n - k) and p = 1 / block. It needs no seed.
    """
    sessions = len(values)
    if sessions < 2:
        return 0.0
    power = np.abs(np.fft.rfft(values - values.mean())) ** 2
    covariance = np.fft.irfft(power, sessions) / sessions
    lag = np.arange(sessions)
    stay = 1.0 - 1.0 / block
    weight = (1 - lag / sessions) * stay**lag + (lag / sessions) * stay ** (sessions - lag)
    return float(np.sqrt(max(float(weight @ covariance), 0.0) / sessions))
