"""Student's t without a dependency: the p-values of regressions need no more than one incomplete beta function."""

from __future__ import annotations

import math


def incomplete_beta(a: float, b: float, x: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b), 0 <= x <= 1, by its continued fraction.

    DLMF 8.17.22 with the symmetry I_x(a, b) = 1 - I_{1-x}(b, a) where it converges faster; modified Lentz evaluation.
    """
    if not (a > 0 and b > 0 and 0.0 <= x <= 1.0):
        raise ValueError(f"Expected a, b > 0 and x in [0, 1], was {a}, {b}, {x}")
    if x in (0.0, 1.0):
        return x
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - incomplete_beta(b, a, 1.0 - x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    tiny = 1e-300
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1.0)
    d = 1.0 / (d if abs(d) > tiny else tiny)
    fraction = d
    for m in range(1, 1_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        step = 1.0
        for term in (even, odd):
            d = 1.0 + term * d
            d = 1.0 / (d if abs(d) > tiny else tiny)
            c = 1.0 + term / c
            c = c if abs(c) > tiny else tiny
            step = c * d
            fraction *= step
        if abs(step - 1.0) < 1e-15:
            break
    return front * fraction / a


def two_sided_p(t: float, degrees: float) -> float:
    """Return P(|T| >= |t|) for Student's t with `degrees` of freedom (> 0)."""
    if math.isnan(t):
        return math.nan
    if math.isinf(t):
        return 0.0
    if t * t < degrees:
        return 1.0 - incomplete_beta(0.5, degrees / 2.0, t * t / (degrees + t * t))
    return incomplete_beta(degrees / 2.0, 0.5, degrees / (degrees + t * t))


def upper_p(t: float, degrees: float) -> float:
    """Return P(T >= t)."""
    half = two_sided_p(t, degrees) / 2.0
    return half if t >= 0 else 1.0 - half
