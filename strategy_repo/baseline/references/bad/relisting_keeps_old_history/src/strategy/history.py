"""What the sessions showed, in ring buffers: one row a session, one column a name, in order of appearance."""

import math

import numpy as np

from strategy import returns


class History:
    """Remember the sessions shown so far, as long as the longest window needs them.

    `count` is the number of sessions seen; sessions are numbered 0, 1, ... Per name, shape (names,): `level` the
    logarithm of wealth with dividends reinvested, `close` the last raw close, `first` and `last` the sessions of
    its first and last print (-1: never), `tradable` whether it may trade. The rings: `levels` (level_rows, names),
    `changes` and `counted` (change_rows, names; the session's logarithmic return and whether there was one),
    `dollars` (dollar_rows, names; traded dollars, 0 on days without a print).
    """

    def __init__(self, level_rows: int, change_rows: int, dollar_rows: int) -> None:
        self.count = 0
        self.names: list = []
        self.slots: dict = {}
        self.symbols: tuple = ()
        self.shown = np.zeros(0, dtype=np.int64)
        self.level = np.zeros(0)
        self.close = np.zeros(0)
        self.first = np.zeros(0, dtype=np.int64)
        self.last = np.zeros(0, dtype=np.int64)
        self.tradable = np.zeros(0, dtype=bool)
        self.levels = np.zeros((level_rows, 0))
        self.changes = np.zeros((change_rows, 0))
        self.counted = np.zeros((change_rows, 0), dtype=bool)
        self.dollars = np.zeros((dollar_rows, 0))

    def record(self, bars: dict) -> None:
        """Take in one closed session. A bar without a positive finite close or split counts as no print."""
        symbols = bars["symbols"]
        if symbols is not self.symbols:
            self._index(symbols)
        close, split, dividend, volume = bars["close"], bars["split"], bars["dividend"], bars["volume"]
        good = (close > 0.0) & (close < math.inf) & (split > 0.0) & (split < math.inf)
        if good.all():
            at, open_today = self.shown, bars["tradable"] > 0.0
        else:
            at, open_today = self.shown[good], bars["tradable"][good] > 0.0
            close, split, dividend, volume = close[good], split[good], dividend[good], volume[good]
        paid = np.where((dividend > 0.0) & (dividend < math.inf), dividend, 0.0)
        traded = np.where((volume > 0.0) & (volume < math.inf), volume, 0.0)
        last = self.last[at]
        fresh = last < 0
        # A print in quarantine may be a split without its record: its return is nobody's profit or loss.
        earned = open_today & ~fresh
        before = np.where(earned, self.close[at], close)
        change = np.where(earned, returns.total_return(close, paid, split, before), 0.0)
        old = self.level[at]
        new = returns.reinvested(old, change)
        self.level[at] = new
        self.first[at] = np.where(fresh, self.count, self.first[at])
        self.last[at] = self.count
        self.close[at] = close
        self.tradable[at] = open_today
        self.levels[self.count % self.levels.shape[0]] = self.level
        row = self.count % self.changes.shape[0]
        self.changes[row] = 0.0
        self.changes[row, at] = new - old
        self.counted[row] = False
        self.counted[row, at] = earned
        row = self.count % self.dollars.shape[0]
        self.dollars[row] = 0.0
        self.dollars[row, at] = close * traded
        self.count += 1

    def level_before(self, sessions: int) -> np.ndarray:
        """Return the levels `sessions` before the last session shown (less than level_rows), shape (names,)."""
        return self.levels[(self.count - 1 - sessions) % self.levels.shape[0]]

    def vector(self, holdings: dict) -> np.ndarray:
        """Return holdings {symbol: shares} as an array, shape (names,). Unknown names and debts are left out."""
        shares = np.zeros(len(self.names))
        for symbol, held in holdings.items():
            slot = self.slots.get(symbol, -1)
            if slot >= 0 and 0.0 < held < math.inf:
                shares[slot] = held
        return shares

    def _index(self, symbols: tuple) -> None:
        for symbol in symbols:
            if symbol not in self.slots:
                self.slots[symbol] = len(self.names)
                self.names.append(symbol)
        self.symbols = symbols
        self.shown = np.array([self.slots[symbol] for symbol in symbols], dtype=np.int64)
        new = len(self.names) - self.level.size
        if new > 0:
            self.level = np.append(self.level, np.zeros(new))
            self.close = np.append(self.close, np.zeros(new))
            self.first = np.append(self.first, np.full(new, -1))
            self.last = np.append(self.last, np.full(new, -1))
            self.tradable = np.append(self.tradable, np.zeros(new, dtype=bool))
            self.levels = np.append(self.levels, np.zeros((self.levels.shape[0], new)), axis=1)
            self.changes = np.append(self.changes, np.zeros((self.changes.shape[0], new)), axis=1)
            self.counted = np.append(self.counted, np.zeros((self.counted.shape[0], new), dtype=bool), axis=1)
            self.dollars = np.append(self.dollars, np.zeros((self.dollars.shape[0], new)), axis=1)
