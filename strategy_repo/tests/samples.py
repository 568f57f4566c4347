"""Small markets, parameters and an account, for the tests. Everything is made from a seed or by hand."""

from dataclasses import replace

import numpy as np
from strategy import features, parameters
from strategy.history import History

#: Short windows, so that small markets fill them.
PARAMS = {
    "min_price": 5.0,
    "min_dollar_volume": 1_000_000.0,
    "universe_size": 50,
    "min_history": 20,
    "max_gap": 3,
    "liquidity_window": 10,
    "momentum_window": 40,
    "momentum_skip": 5,
    "volatility_window": 20,
    "reversal_window": 4,
    "momentum_weight": 1.0,
    "volatility_weight": 0.5,
    "reversal_weight": 0.25,
    "hold_fraction": 0.4,
    "keep_fraction": 0.6,
    "min_holdings": 2,
    "max_holdings": 10,
    "volatility_sizing": 1.0,
    "max_weight": 0.25,
    "few_names_weight": 0.35,
    "exposure": 0.95,
    "no_trade_band": 0.2,
    "max_participation": 0.05,
    "max_sessions": 3,
    "max_position_volume": 0.5,
    "limit_volatilities": 2.0,
}


def bars(symbols: tuple, close: list, **columns: list) -> dict:
    """Return one session: 1,000,000 shares a name, no dividends, no splits, all tradable unless said."""
    size = len(symbols)
    price = np.array(close, dtype=float)
    session = {
        "date": "2001-01-01",
        "symbols": symbols,
        "open": price,
        "high": price,
        "low": price,
        "close": price,
        "volume": np.full(size, 1e6),
        "dividend": np.zeros(size),
        "split": np.ones(size),
        "tradable": np.ones(size),
    }
    for name, values in columns.items():
        session[name] = np.array(values, dtype=float)
    return session


def market(seed: int, sessions: int = 70, names: int = 9) -> list:
    """Return sessions of a made-up market, oldest first.

    One name in three lists late; prints are missed, names halt and stop printing for good; there are dividends
    and splits, and one name is too cheap and one too thin to be bought.
    """
    chance = np.random.default_rng(seed)
    labels = [f"N{number:02d}" for number in range(names)]
    price = chance.uniform(20.0, 90.0, names)
    price[0] = 2.0
    size = chance.uniform(2e5, 2e6, names)
    size[1] = 100.0
    begins = np.where(np.arange(names) % 3 == 2, chance.integers(1, sessions // 2, names), 0)
    ends = np.where(np.arange(names) % 5 == 4, chance.integers(sessions // 2, sessions, names), sessions)
    shown: list = []
    symbols: tuple = ()
    for day in range(sessions):
        split = np.where(chance.random(names) < 0.01, 2.0, 1.0)
        dividend = np.where(chance.random(names) < 0.02, 0.005 * price, 0.0)
        price = price / split * np.exp(chance.normal(0.0005, 0.02, names))
        printed = (begins <= day) & (day < ends) & (chance.random(names) > 0.03)
        halted = chance.random(names) < 0.02
        today = tuple(label for label, there in zip(labels, printed, strict=True) if there)
        symbols = symbols if today == symbols else today
        volume = size * np.exp(chance.normal(0.0, 0.3, names))
        columns = {"volume": volume, "dividend": dividend, "split": split, "tradable": ~halted}
        session = bars(symbols, price[printed], **{name: values[printed] for name, values in columns.items()})
        session["date"] = f"{2001 + day // 250}-{1 + day % 250 // 21:02d}-{1 + day % 21:02d}"
        shown.append(session)
    return shown


def portfolio(equity: float, shares: dict) -> dict:
    """Return what a strategy is told of its account."""
    return {"date": "2001-01-01", "equity": equity, "cash": 0.0, "shares": shares}


def measured(size: int = 4, **values: object) -> features.Features:
    """Return features of names that are all eligible, with other values where said."""
    read = parameters.read(PARAMS)
    history = History(read.momentum_window + 1, read.volatility_window, read.liquidity_window)
    symbols = tuple(f"N{slot}" for slot in range(size))
    for day in range(60):
        history.record(bars(symbols, [20.0 + 0.1 * (day % 2)] * size, volume=[1e5] * size))
    made = features.measure(history, read)
    return replace(made, **{name: np.array(column) for name, column in values.items()})


class Account:
    """Follow decisions at the close and without friction, so that tests can give strategies real portfolios."""

    def __init__(self, cash: float) -> None:
        self.cash = cash
        self.shares: dict = {}
        self.close: dict = {}

    def show(self, session: dict) -> None:
        """Book splits, dividends and closes."""
        columns = ("close", "dividend", "split")
        for row, symbol in enumerate(session["symbols"]):
            close, dividend, split = (float(session[column][row]) for column in columns)
            held = self.shares.get(symbol, 0.0) * split
            self.cash += held * dividend
            self.close[symbol] = close
            if held:
                self.shares[symbol] = held

    def portfolio(self) -> dict:
        """Return the account in the strategy's terms."""
        held = sum(count * self.close[symbol] for symbol, count in self.shares.items())
        return portfolio(self.cash + held, dict(self.shares))

    def follow(self, decision: dict) -> None:
        """Trade to the weights of a decision."""
        if decision["action"] == "hold":
            return
        now = self.portfolio()
        self.shares = {
            symbol: weight * now["equity"] / self.close[symbol] for symbol, weight in decision["weights"].items()
        }
        self.cash = now["equity"] - sum(count * self.close[symbol] for symbol, count in self.shares.items())


def decisions(strategy: object, sessions: list, every: int = 5, cash: float = 1e6) -> list:
    """Return pairs (portfolio, decision), one every few sessions, each decision followed at once."""
    account = Account(cash)
    made = []
    for day, session in enumerate(sessions):
        strategy.on_session(session)
        account.show(session)
        if day % every == 0:
            now = account.portfolio()
            answer = strategy.decide(now)
            made.append((now, answer))
            account.follow(answer)
    return made
