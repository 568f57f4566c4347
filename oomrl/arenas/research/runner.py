"""Run model code inside the sandbox. Started as a script there; the service never imports model code.

Speaks frames on descriptor 3: u32 length (little-endian), a JSON header, then raw little-endian float64
arrays whose shapes the header names under "arrays". It answers forecasts and decides nothing: what is a leak,
what is a loss and what is a score is for the judge outside, who sends the panels and compares the answers.

Nothing of this project is imported here. Model code runs in a fresh namespace at every call, so that features
cannot remember a panel that they have seen.
"""

import io
import json
import os
import struct

import joblib
import numpy as np
import pandas as pd
from sklearn.linear_model import ElasticNet
from sklearn.pipeline import Pipeline

MAX_FEATURES = 64


class Bad(Exception):
    """Model code broke the convention; the text goes to its author."""


def read_exact(stream, count):
    data = stream.read(count)
    if data is None or len(data) < count:
        raise EOFError
    return data


def read_frame(stream):
    header = json.loads(read_exact(stream, struct.unpack("<I", read_exact(stream, 4))[0]))
    arrays = {}
    for name, shape in header.get("arrays", []):
        size = int(np.prod(shape)) * 8
        arrays[name] = np.frombuffer(read_exact(stream, size), dtype="<f8").reshape(shape)
    return header, arrays


def write_frame(stream, header, arrays=()):
    header["arrays"] = [[name, list(values.shape)] for name, values in arrays]
    text = json.dumps(header).encode()
    stream.write(struct.pack("<I", len(text)) + text)
    for _, values in arrays:
        stream.write(np.ascontiguousarray(values, dtype="<f8").tobytes())
    stream.flush()


class Desk:
    """Hold the code, the fitted estimator and the panel shown so far."""

    def __init__(self, code, names):
        self.program = compile(code, "model_code", "exec")
        self.names = names
        self.estimator = None
        self.feature_names = ()
        self.history = {}
        self.filled = 0

    def namespace(self):
        space = {"__name__": "model_code"}
        exec(self.program, space)  # noqa: S102 - this is the sandbox
        return space

    def features(self, fields):
        """Return (names, array of shape (days, names, features)) of a panel."""
        days = len(next(iter(fields.values())))
        index = pd.bdate_range("2000-01-03", periods=days)
        panel = {name: pd.DataFrame(values.copy(), index=index, columns=self.names) for name, values in fields.items()}
        answer = self.namespace()["features"](panel)
        if not isinstance(answer, dict) or not 1 <= len(answer) <= MAX_FEATURES:
            raise Bad(f"Expected features to return a dict of 1 to {MAX_FEATURES} frames")
        blocks = []
        for name, values in answer.items():
            block = np.asarray(values, dtype=float)
            if block.shape != (days, len(self.names)):
                raise Bad(f"Expected feature {name!s:.40} of shape {(days, len(self.names))}, was {block.shape}")
            blocks.append(block)
        return tuple(str(name) for name in answer), np.stack(blocks, axis=-1)

    def fit(self, fields, target):
        names, x = self.features(fields)
        estimator = self.namespace()["build"]()
        last = estimator.steps[-1][1] if type(estimator) is Pipeline else estimator
        if type(last) is not ElasticNet:
            raise Bad("Expected build to return an ElasticNet, or a Pipeline that ends in one")
        rows = np.isfinite(x).all(axis=-1) & np.isfinite(target)
        if rows.sum() < 100:
            raise Bad(f"Expected at least 100 rows without gaps to train on, were {int(rows.sum())}")
        np.random.seed(0)
        estimator.fit(x[rows], target[rows])
        store = io.BytesIO()
        joblib.dump(estimator, store)
        store.seek(0)
        self.estimator = joblib.load(store)
        self.feature_names = names
        last = self.estimator.steps[-1][1] if type(self.estimator) is Pipeline else self.estimator
        coefficients = np.asarray(last.coef_, dtype=float).ravel()
        return int(rows.sum()), coefficients

    def predict(self, fields, last_row_only=False):
        names, x = self.features(fields)
        if names != self.feature_names:
            raise Bad("Expected the same features at every call")
        if last_row_only:
            x = x[-1:]
        forecast = np.full(x.shape[:2], np.nan)
        rows = np.isfinite(x).all(axis=-1)
        if rows.any():
            forecast[rows] = np.asarray(self.estimator.predict(x[rows]), dtype=float)
        return forecast

    def start_stream(self, fields, capacity):
        self.history = {name: np.full((capacity, len(self.names)), np.nan) for name in fields}
        self.filled = len(next(iter(fields.values())))
        for name, values in fields.items():
            self.history[name][: self.filled] = values

    def append(self, row):
        for name, values in row.items():
            self.history[name][self.filled] = values
        self.filled += 1
        shown = {name: values[: self.filled] for name, values in self.history.items()}
        return self.predict(shown, last_row_only=True)[0]


def answer(desk, header, arrays):
    op = header["op"]
    if op == "load":
        desk = Desk(header["code"], header["names"])
        space = desk.namespace()
        if not callable(space.get("build")) or not callable(space.get("features")):
            raise Bad("Expected functions build() and features(panel)")
        return desk, {"ok": True}, ()
    if op == "fit":
        target = arrays.pop("target")
        rows, coefficients = desk.fit(dict(arrays), target)
        return (
            desk,
            {"ok": True, "rows": rows, "features": list(desk.feature_names)},
            [("coefficients", coefficients)],
        )
    if op == "predict":
        return desk, {"ok": True}, [("forecast", desk.predict(dict(arrays)))]
    if op == "stream":
        desk.start_stream(dict(arrays), header["capacity"])
        return desk, {"ok": True}, ()
    if op == "append":
        return desk, {"ok": True}, [("forecast", desk.append(dict(arrays)))]
    raise Bad(f"Expected a known request, was {op}")


def serve(source, sink):
    """Answer requests until the other side hangs up. Any failure of model code is an answer, not an end."""
    desk = None
    while True:
        try:
            header, arrays = read_frame(source)
        except EOFError:
            return
        try:
            desk, reply, blocks = answer(desk, header, arrays)
        except Exception as error:  # noqa: BLE001 - stage boundary: whatever model code raises is its failure
            kind = "convention" if isinstance(error, Bad) else "exception"
            reply, blocks = (
                {"ok": False, "kind": kind, "message": f"{type(error).__name__}: {error}"[:500]},
                (),
            )
        write_frame(sink, reply, blocks)


def main(descriptor=3):
    with os.fdopen(descriptor, "rb", closefd=False) as source, os.fdopen(descriptor, "wb", closefd=False) as sink:
        serve(source, sink)


if __name__ == "__main__":
    main()
