"""Equal-weight rebalancing in bt."""

import json
import sys
import time
from pathlib import Path

import bt
import pandas as pd
from data import load


def main(path, daily, sessions):
    days, symbols, arrays = load(Path(path), sessions)
    frame = pd.DataFrame(arrays["close"], index=pd.DatetimeIndex(days), columns=symbols)
    begun = time.perf_counter()
    when = bt.algos.RunDaily() if daily else bt.algos.RunWeekly()
    strategy = bt.Strategy("equal", [when, bt.algos.SelectAll(), bt.algos.WeighEqually(), bt.algos.Rebalance()])
    test = bt.Backtest(strategy, frame, initial_capital=1_000_000, progress_bar=False)
    result = bt.run(test)
    seconds = time.perf_counter() - begun
    print(
        json.dumps(
            {
                "peer": "bt",
                "seconds": seconds,
                "strategy_seconds": 0.0,
                "sessions": len(days),
                "final_equity": float(result.prices.iloc[-1, 0]) * 10_000,
            }
        )
    )


main(sys.argv[1], sys.argv[2] == "daily", int(sys.argv[3]) if len(sys.argv) > 3 else None)
