"""One of the two strategies in zipline-reloaded: market orders filled at the next close, whole shares, no fees."""

import json
import os
import sys
import tempfile
import time
import warnings
from pathlib import Path

import pandas as pd
from data import load
from strategies import Timed

warnings.filterwarnings("ignore")  # of pandas, about what zipline does


def bundle(days, symbols, arrays):
    """Return what puts the tape into a store of zipline's own."""

    def ingest(
        environ, assets, minutes, daily, adjustments, calendar, start, end, cache, show_progress, folder
    ):  # the order that zipline gives them in
        names = {"symbol": symbols, "asset_name": symbols, "start_date": start, "end_date": end, "exchange": "XNYS"}
        places = {"exchange": ["XNYS"], "canonical_name": ["XNYS"], "country_code": ["US"]}
        assets.write(equities=pd.DataFrame(names), exchanges=pd.DataFrame(places))
        index = pd.DatetimeIndex(days)
        frames = (
            pd.DataFrame({field: arrays[field][:, n] for field in arrays}, index=index) for n in range(len(symbols))
        )
        daily.write(enumerate(frames))
        adjustments.write()

    return ingest


def main(path, daily, name, sessions):
    days, symbols, arrays = load(Path(path), sessions)
    with tempfile.TemporaryDirectory() as root:
        os.environ["ZIPLINE_ROOT"] = root
        from zipline import api, run_algorithm
        from zipline.data import bundles
        from zipline.finance import commission, slippage

        first, last = pd.Timestamp(days[0]), pd.Timestamp(days[-1])
        bundles.register(
            "tape", bundle(days, symbols, arrays), calendar_name="XNYS", start_session=first, end_session=last
        )
        bundles.ingest("tape")
        timed, orders = Timed(name, symbols, arrays), 0

        def initialize(context):
            api.set_commission(commission.PerShare(0.0, 0.0))
            api.set_slippage(slippage.NoSlippage())
            context.assets = [api.symbol(one) for one in symbols]
            context.week, context.at = None, 0

        def handle_data(context, data):
            nonlocal orders
            day = api.get_datetime().date()
            week, at = day.isocalendar()[:2], context.at
            due, context.week, context.at = daily or week != context.week, week, at + 1
            timed.show(at, day)
            if not due:
                return
            portfolio = context.portfolio
            held = {one.symbol: float(position.amount) for one, position in portfolio.positions.items()}
            value = portfolio.portfolio_value
            weights = timed.weights(day, value, portfolio.cash, dict.fromkeys(symbols, 0.0) | held)
            if weights is None:
                return
            prices = data.current(context.assets, "close")
            deltas = []
            for asset in context.assets:
                wanted = int(weights.get(asset.symbol, 0.0) * value / prices[asset] + 1e-9)
                deltas.append((wanted - int(held.get(asset.symbol, 0.0)), asset))
            for delta, asset in sorted(deltas, key=lambda pair: pair[0]):
                if delta:
                    orders += 1
                    api.order(asset, delta)

        begun, processor = time.perf_counter(), time.process_time()
        result = run_algorithm(
            start=first,
            end=last,
            initialize=initialize,
            handle_data=handle_data,
            capital_base=1_000_000,
            benchmark_returns=pd.Series(0.0, index=pd.DatetimeIndex(days)),
            bundle="tape",
            data_frequency="daily",
        )
        seconds, processor = time.perf_counter() - begun, time.process_time() - processor
    told = {
        "peer": "zipline-reloaded",
        "seconds": seconds,
        "processor_seconds": processor,
        "strategy_seconds": timed.seconds,
        "orders": orders,
        "sessions": len(days),
    }
    print(json.dumps(told | {"final_equity": float(result["portfolio_value"].iloc[-1])}))


main(sys.argv[1], sys.argv[2] == "daily", sys.argv[3], int(sys.argv[4]) if len(sys.argv) > 4 else None)
