"""Tests run beside one another, so numpy gets one thread in each process: more would only wait for each other."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
