"""One of the two strategies in bt: weekly or daily, filled at the close that it decides on."""

import json
import sys
import time
from pathlib import Path

import bt
import pandas as pd
from data import load
from strategies import Timed


class Decide(bt.Algo):
    def __init__(self, timed, days):
        super().__init__()
        self.timed, self.days, self.shown = timed, {pd.Timestamp(day): at for at, day in enumerate(days)}, 0

    def __call__(self, target):
        at = self.days.get(target.now)
        if at is None:  # the row that bt puts before the first
            return False
        for number in range(self.shown, at + 1):
            self.timed.show(number, target.now.date())
        self.shown = at + 1
        held = {name: float(child.position) for name, child in target.children.items()}
        weights = self.timed.weights(target.now.date(), target.value, target.capital, held)
        if weights is None:
            return False
        target.temp["weights"] = {name: weight for name, weight in weights.items() if weight}
        return True


def main(path, daily, name, sessions):
    days, symbols, arrays = load(Path(path), sessions)
    frame = pd.DataFrame(arrays["close"], index=pd.DatetimeIndex(days), columns=symbols)
    timed = Timed(name, symbols, arrays)
    begun, processor = time.perf_counter(), time.process_time()
    when = bt.algos.RunDaily() if daily else bt.algos.RunWeekly()
    strategy = bt.Strategy(name, [when, Decide(timed, days), bt.algos.Rebalance()])
    test = bt.Backtest(strategy, frame, initial_capital=1_000_000, progress_bar=False)
    result = bt.run(test)
    seconds, processor = time.perf_counter() - begun, time.process_time() - processor
    spent = test.strategy.stack.algos[1].timed.seconds  # bt runs a copy
    told = {
        "peer": "bt",
        "seconds": seconds,
        "processor_seconds": processor,
        "strategy_seconds": spent,
        "sessions": len(days),
    }
    print(json.dumps(told | {"final_equity": float(result.prices.iloc[-1, 0]) * 10_000}))


main(sys.argv[1], sys.argv[2] == "daily", sys.argv[3], int(sys.argv[4]) if len(sys.argv) > 4 else None)
