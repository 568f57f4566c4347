"""Equal-weight rebalancing in nautilus_trader's backtest engine: cash account, market orders, no fees."""

import json
import sys
import time
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
from data import load
from nautilus_trader.backtest.engine import BacktestEngine
from nautilus_trader.config import BacktestEngineConfig, LoggingConfig, StrategyConfig
from nautilus_trader.model.currencies import USD
from nautilus_trader.model.data import BarType
from nautilus_trader.model.enums import AccountType, OmsType, OrderSide
from nautilus_trader.model.identifiers import Venue
from nautilus_trader.model.objects import Money
from nautilus_trader.persistence.wranglers import BarDataWrangler
from nautilus_trader.test_kit.providers import TestInstrumentProvider
from nautilus_trader.trading.strategy import Strategy


class Config(StrategyConfig, frozen=True):
    daily: bool = False
    names: int = 100


class EqualWeight(Strategy):
    def __init__(self, config):
        super().__init__(config)
        self.closes = {}
        self.seen = 0
        self.week = None
        self.spent = 0.0
        self.instruments = []
        self.held = {}
        self.cash = 1_000_000.0

    def on_start(self):
        for instrument in self.cache.instruments():
            self.instruments.append(instrument)
            self.subscribe_bars(BarType.from_str(f"{instrument.id}-1-DAY-LAST-EXTERNAL"))

    def on_bar(self, bar):
        self.closes[bar.bar_type.instrument_id] = float(bar.close)
        self.seen += 1
        if self.seen < self.config.names:
            return
        self.seen = 0
        week = pd.Timestamp(bar.ts_event).isocalendar()[:2]
        due = self.config.daily or week != self.week
        self.week = week
        if not due:
            return
        value = self.cash + sum(self.held.get(i, 0) * price for i, price in self.closes.items())
        share = 0.98 * value / len(self.instruments)
        deltas = []
        for instrument in self.instruments:
            deltas.append((int(share / self.closes[instrument.id]) - self.held.get(instrument.id, 0), instrument))
        for delta, instrument in sorted(deltas, key=lambda pair: pair[0]):
            if delta == 0:
                continue
            side = OrderSide.BUY if delta > 0 else OrderSide.SELL
            self.submit_order(self.order_factory.market(instrument.id, side, instrument.make_qty(abs(delta))))

    def on_order_filled(self, event):
        sign = 1 if event.order_side == OrderSide.BUY else -1
        self.cash -= sign * int(event.last_qty) * float(event.last_px)
        self.held[event.instrument_id] = self.held.get(event.instrument_id, 0) + sign * int(event.last_qty)


def main(path, daily, sessions):
    days, symbols, arrays = load(Path(path), sessions)
    index = pd.DatetimeIndex(days, tz="UTC")
    engine = BacktestEngine(BacktestEngineConfig(logging=LoggingConfig(bypass_logging=True)))
    engine.add_venue(
        Venue("XNAS"),
        OmsType.NETTING,
        AccountType.MARGIN,
        [Money(1_000_000, USD)],
        base_currency=USD,
        default_leverage=Decimal(10),
    )
    bars = []
    for number, symbol in enumerate(symbols):
        instrument = TestInstrumentProvider.equity(symbol, "XNAS")
        engine.add_instrument(instrument)
        frame = pd.DataFrame({f: np.round(arrays[f][:, number], 2) for f in arrays}, index=index)
        frame["high"] = frame[["open", "high", "low", "close"]].max(axis=1)
        frame["low"] = frame[["open", "low", "close"]].min(axis=1)
        bars.append(
            BarDataWrangler(BarType.from_str(f"{instrument.id}-1-DAY-LAST-EXTERNAL"), instrument).process(frame)
        )
    begun, processor = time.perf_counter(), time.process_time()
    engine.add_data(sorted((bar for some in bars for bar in some), key=lambda bar: bar.ts_init), sort=False)
    strategy = EqualWeight(Config(daily=daily, names=len(symbols)))
    engine.add_strategy(strategy)
    engine.run()
    seconds, processor = time.perf_counter() - begun, time.process_time() - processor
    value = strategy.cash + sum(strategy.held.get(i, 0) * p for i, p in strategy.closes.items())
    print(
        json.dumps(
            {
                "peer": "nautilus_trader",
                "seconds": seconds,
                "processor_seconds": processor,
                "strategy_seconds": 0.0,
                "sessions": len(days),
                "final_equity": value,
                "held": len(strategy.held),
            }
        )
    )


main(sys.argv[1], sys.argv[2] == "daily", int(sys.argv[4]) if len(sys.argv) > 4 else None)
