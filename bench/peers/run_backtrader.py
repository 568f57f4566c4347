"""One of the two strategies in backtrader: market orders at the next open, whole shares, no commission."""

import json
import sys
import time
from pathlib import Path

import backtrader as bt
import pandas as pd
from data import load
from strategies import Timed


class Decided(bt.Strategy):
    params = {"daily": False, "timed": None}

    def __init__(self):
        self.week = None
        self.orders = 0

    def next(self):
        day = self.datas[0].datetime.date(0)
        week = day.isocalendar()[:2]
        due = self.p.daily or week != self.week
        self.week = week
        self.p.timed.show(len(self) - 1, day)
        if not due:
            return
        held = {feed._name: float(self.getposition(feed).size) for feed in self.datas}
        value = self.broker.getvalue()
        weights = self.p.timed.weights(day, value, self.broker.getcash(), held)
        if weights is None:
            return
        deltas = []
        for feed in self.datas:
            wanted = int(weights.get(feed._name, 0.0) * value / feed.close[0] + 1e-9)
            deltas.append((wanted - self.getposition(feed).size, feed))
        for delta, feed in sorted(deltas, key=lambda pair: pair[0]):
            self.orders += delta != 0
            if delta < 0:
                self.sell(data=feed, size=-delta)
            elif delta > 0:
                self.buy(data=feed, size=delta)


def main(path, daily, name, sessions):
    days, symbols, arrays = load(Path(path), sessions)
    index = pd.DatetimeIndex(days)
    feeds = [pd.DataFrame({field: arrays[field][:, n] for field in arrays}, index=index) for n in range(len(symbols))]
    timed = Timed(name, symbols, arrays)
    begun, processor = time.perf_counter(), time.process_time()
    cerebro = bt.Cerebro(stdstats=False)
    for symbol, frame in zip(symbols, feeds):
        cerebro.adddata(bt.feeds.PandasData(dataname=frame), name=symbol)
    cerebro.addstrategy(Decided, daily=daily, timed=timed)
    cerebro.broker.setcash(1_000_000)
    cerebro.broker.set_checksubmit(False)
    result = cerebro.run()
    seconds, processor = time.perf_counter() - begun, time.process_time() - processor
    print(
        json.dumps(
            {
                "peer": "backtrader",
                "seconds": seconds,
                "processor_seconds": processor,
                "strategy_seconds": timed.seconds,
                "orders": result[0].orders,
                "sessions": len(days),
                "final_equity": cerebro.broker.getvalue(),
            }
        )
    )


main(sys.argv[1], sys.argv[2] == "daily", sys.argv[3], int(sys.argv[4]) if len(sys.argv) > 4 else None)
