"""Equal-weight rebalancing in backtrader: market orders at the next open, whole shares, no commission."""

import json
import sys
import time
from pathlib import Path

import backtrader as bt
import pandas as pd
from data import load


class EqualWeight(bt.Strategy):
    params = {"daily": False}

    def __init__(self):
        self.week = None
        self.spent = 0.0

    def next(self):
        week = self.datas[0].datetime.date(0).isocalendar()[:2]
        due = self.p.daily or week != self.week
        self.week = week
        if not due:
            return
        begun = time.perf_counter()
        share = 1.0 / len(self.datas)
        targets = [share] * len(self.datas)
        self.spent += time.perf_counter() - begun
        value = self.broker.getvalue()
        deltas = []
        for feed, weight in zip(self.datas, targets):
            wanted = int(weight * value / feed.close[0])
            deltas.append((wanted - self.getposition(feed).size, feed))
        for delta, feed in sorted(deltas, key=lambda pair: pair[0]):
            if delta < 0:
                self.sell(data=feed, size=-delta)
            elif delta > 0:
                self.buy(data=feed, size=delta)


def main(path, daily, sessions):
    days, symbols, arrays = load(Path(path), sessions)
    index = pd.DatetimeIndex(days)
    feeds = [pd.DataFrame({field: arrays[field][:, n] for field in arrays}, index=index) for n in range(len(symbols))]
    begun = time.perf_counter()
    cerebro = bt.Cerebro(stdstats=False)
    for symbol, frame in zip(symbols, feeds):
        cerebro.adddata(bt.feeds.PandasData(dataname=frame), name=symbol)
    cerebro.addstrategy(EqualWeight, daily=daily)
    cerebro.broker.setcash(1_000_000)
    cerebro.broker.set_checksubmit(False)
    result = cerebro.run()
    seconds = time.perf_counter() - begun
    print(
        json.dumps(
            {
                "peer": "backtrader",
                "seconds": seconds,
                "strategy_seconds": result[0].spent,
                "sessions": len(days),
                "final_equity": cerebro.broker.getvalue(),
            }
        )
    )


main(sys.argv[1], sys.argv[2] == "daily", int(sys.argv[3]) if len(sys.argv) > 3 else None)
