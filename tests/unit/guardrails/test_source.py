# ruff: noqa: E501  (each sample is one line)
"""Code that reaches, forges, looks around or hides is refused; honest plain code is not.

Long by nature: it is a table of samples.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from guardrails.checks.static import judge_static
from guardrails.policy import Policy
from tests.unit.guardrails import small

REACH = {
    "frames": "def f(g):\n    return g.gi_frame.f_back\n",
    "generator own frame": "def f():\n    g = (x for x in [1])\n    return g.gi_frame\n",
    "traceback": "def f():\n    try:\n        return 1 / 0\n    except ZeroDivisionError as e:\n        return e.__traceback__\n",
    "with_traceback": "def f(e):\n    return e.with_traceback(None)\n",
    "subclasses": "def f():\n    return ().__class__.__base__.__subclasses__()\n",
    "mro by name": "def f(x):\n    return x.mro()\n",
    "getattr dunder": "def f(x):\n    return getattr(x, '__class__')\n",
    "getattr pieces": "def f(x):\n    return getattr(x, '__cl' + 'ass__')\n",
    "getattr value": "def f(xs):\n    return list(map(getattr, xs, xs))\n",
    "getattr alias": "G = getattr\n",
    "getattr loop": "def f(x):\n    return [getattr(x, n) for n in ('count', '__class__')]\n",
    "getattr loop and store": "def f(x, y):\n    for n in ('count',):\n        n = y\n        return getattr(x, n)\n    return 0\n",
    "getattr loop and parameter": "def f(x, n):\n    getattr(x, n)\n    for n in ('count',):\n        pass\n    return 0\n",
    "getattr loop elsewhere": "N = '__class__'\n\n\ndef f(x):\n    [n for n in ('count',)]\n    return getattr(x, n)\n",
    "getattr closure": "def f(x, n):\n    def g():\n        return [n for n in ('count',)], getattr(x, n)\n\n    return g\n",
    "getattr nested store": "def f(x, y):\n    for n in ('count',):\n\n        def g():\n            nonlocal n\n            n = y\n\n        g()\n        return getattr(x, n)\n    return 0\n",
    "getattr table changed": "def f(x, y):\n    t = {'count': 1}\n    t[y] = 2\n    return [getattr(x, n) for n in t]\n",
    "getattr table given away": "def f(x, y):\n    t = {'count': 1}\n    y(t)\n    return [getattr(x, n) for n in t]\n",
    "getattr hidden constant": "A = ('count',)\n\n\ndef f(x, A):\n    return [getattr(x, n) for n in A]\n",
    "getattr list constant": "A = ['count']\n\n\ndef f(x):\n    return [getattr(x, n) for n in A]\n",
    "getattr f-string": "def f(x, y):\n    for n in ('a', 'b'):\n        return getattr(x, f'{n}{y}')\n    return 0\n",
    "getattr f-string reach": "def f(x):\n    for n in ('class', 'dict'):\n        return getattr(x, f'__{n}__')\n    return 0\n",
    "setattr shared": "class A:\n    a = 1\n\n\ndef f():\n    for n in ('a',):\n        setattr(A, n, 1)\n",
    "setattr method": "class A:\n    def a(self):\n        return 1\n\n\ndef f(x):\n    for n in ('a',):\n        setattr(x, n, 1)\n",
    "setattr value": "def f(xs):\n    return list(map(setattr, xs, xs, xs))\n",
    "setattr": "def f(x):\n    setattr(x, 'a', 1)\n",
    "vars": "def f(x):\n    return vars(x)\n",
    "globals": "def f():\n    return globals()\n",
    "builtins name": "def f():\n    return __builtins__\n",
    "import call": "def f():\n    return __import__('os')\n",
    "eval": "def f(x):\n    return eval(x)\n",
    "exec": "def f(x):\n    exec(x)\n",
    "compile": "def f(x):\n    return compile(x, '', 'exec')\n",
    "open": "def f():\n    return open('x')\n",
    "open at class level": "class A:\n    x = open\n",
    "open conditionally local to module": "if 0:\n    open = 1\n\n\ndef f():\n    return open('x')\n",
    "open as default": "def f(open=open):\n    return open('x')\n",
    "open deleted class name": "class A:\n    open = 1\n    del open\n    x = open\n",
    "type three": "def f():\n    return type('A', (), {})\n",
    "type as value": "def f(x):\n    return type(x)\n",
    "type name called": "def f(x):\n    return type(x).__name__.__class__\n",
    "os": "import os\n",
    "os from": "from os import environ\n",
    "sys re-export": "from dataclasses import sys\n",
    "own re-export": "from strategy.numbers import np\n",
    "own re-export by attribute": "import strategy.signal\n\n\ndef f():\n    return strategy.signal.total_return.x\n",
    "star": "from math import *\n",
    "numpy load": "import numpy as np\n\n\ndef f():\n    return np.load('x')\n",
    "numpy lib": "import numpy as np\n\n\ndef f():\n    return np.lib.npyio.DataSource()\n",
    "numpy testing": "from numpy import testing\n",
    "numpy f2py": "import numpy.f2py\n",
    "numpy ctypeslib": "import numpy as np\n\n\ndef f(x):\n    return np.ctypeslib.as_array(x)\n",
    "numpy frompyfunc": "import numpy as np\n\n\ndef f(x):\n    return np.frompyfunc(x, 1, 1)\n",
    "numpy vectorize": "import numpy as np\n\n\ndef f(x):\n    return np.vectorize(x)\n",
    "numpy memmap": "from numpy import memmap\n",
    "numpy module value": "import numpy as np\n\n\ndef f():\n    m = [np]\n    return m[0].load('x')\n",
    "numpy default argument": "import numpy as np\n\n\ndef f(m=np):\n    return m.load('x')\n",
    "numpy returned": "import numpy as np\n\n\ndef f():\n    return np\n",
    "tofile": "def f(x):\n    x.tofile('y')\n",
    "dump": "def f(x):\n    x.dump('y')\n",
    "ctypes view": "def f(x):\n    return x.ctypes\n",
    "format reach": "def f(x):\n    return '{0.__class__}'.format(x)\n",
    "format item reach": "def f(x):\n    return '{0[a]}'.format(x)\n",
    "format nested reach": "def f(x, y):\n    return '{0:{1.a}}'.format(x, y)\n",
    "format variable": "def f(x, t):\n    return t.format(x)\n",
    "format via str": "def f(x, t):\n    return str.format(t, x)\n",
    "format_map": "def f(x, t):\n    return t.format_map(x)\n",
    "format value": "def f(t):\n    g = t.format\n    return g(1)\n",
    "f-string reach": "def f(x):\n    return f'{x.__class__}'\n",
    "f-string call": "def f(x):\n    return f'{open(x)}'\n",
    "match reach": "def f(x):\n    match x:\n        case object(__class__=c):\n            return c\n    return None\n",
    "match positional": "from strategy.signal import change\n\n\ndef f(x):\n    match x:\n        case change(a):\n            return a\n    return 0\n",
    "match binds builtin": "def f(x):\n    match x:\n        case dict(__doc__=d):\n            return d\n    return 0\n",
    "lambda reach": "F = lambda x: x.__class__\n",
    "comprehension reach": "def f(xs):\n    return [x.__dict__ for x in xs]\n",
    "comprehension scope": "def f(xs):\n    [open for open in xs]\n    return open('x')\n",
    "walrus": "def f(x):\n    return (y := x.__class__)\n",
    "decorator reach": "def f(x):\n    return x\n\n\n@f\ndef g():\n    return 1\n",
    "class decorator": "def f(x):\n    return x\n\n\n@f\nclass A:\n    x: int = 1\n",
    "annotation": "def f(x: print('hi')):\n    return x\n",
    "return annotation": "def f(x) -> [y for y in (1,)]:\n    return x\n",
    "class annotation": "class A:\n    x: (lambda: 1)() = 1\n",
    "delete attribute": "def f(x):\n    del x.append\n",
    "super with arguments": "class A:\n    def f(self):\n        return super(A, self).g()\n",
    "object setattr": "class A:\n    def f(self, x):\n        object.__setattr__(x, 'a', 1)\n",
    "object setattr other": "class A:\n    def __post_init__(self, x):\n        object.__setattr__(x, 'a', 1)\n",
    "await": "async def f():\n    return 1\n",
    "global": "def f():\n    global X\n    X = 1\n",
    "name of module": "def f():\n    return __name__\n",
    "file of module": "def f():\n    return __file__\n",
    "print": "def f():\n    print('42 passed')\n",
    "exit": "def f():\n    raise SystemExit(0)\n",
    "exit name": "def f():\n    exit()\n",
    "id": "def f(x):\n    return id(x)\n",
    "hash": "def f(x):\n    return hash(x)\n",
    "breakpoint": "def f():\n    breakpoint()\n",
    "unseeded": "import numpy as np\n\n\ndef f():\n    return np.random.default_rng(None)\n",
    "unseeded keyword": "import numpy as np\n\n\ndef f():\n    return np.random.default_rng(seed=None)\n",
    "unseeded alias": "import numpy as np\n\n\ndef f(make=np.random.default_rng):\n    return make()\n",
    "unseeded attribute": "import numpy as np\n\n\nclass A:\n    def f(self):\n        return np.random.default_rng(self.seed)\n",
    "unseeded unpacked": "import numpy as np\n\n\ndef f(x):\n    return np.random.default_rng(*x)\n",
    "unseeded or": "import numpy as np\n\n\ndef f(x):\n    return np.random.default_rng(x or None)\n",
    "kind of another module": "import numpy as np\n\nfrom strategy import numbers\n\n\ndef f():\n    return numbers.HALF.astype(numbers.WORD)\n",
    "kind by a module's name": "dtype = 'x'\n\n\ndef f(x, y):\n    return x.astype(y.dtype)\n",
    "kind set by name": "class A:\n    def __post_init__(self):\n        object.__setattr__(self, 'dtype', 1)\n",
    "kind in a class": "import numpy as np\n\n\nclass A:\n    float = 'x'\n    x = np.full((), 'y', float)\n",
    "kind unpacked into an alias": "import numpy as np\n\n\ndef f(x, **given):\n    make = np.concatenate\n    return make(x, **given)\n",
    "kind by a pattern": "def f(x):\n    match x:\n        case object(astype=cast):\n            return cast('f8')\n    return 0\n",
    "kind at its place": "import numpy as np\n\n\ndef f(x):\n    return np.geomspace(1, 2, 3, True, x)\n",
    "fields by text": "from typing import NamedTuple\n\n\ndef f(x):\n    return NamedTuple('A', x)(1)\n",
    "enum by text": "from enum import Enum\n\nMAKE = Enum\n",
    "today": "def f(x):\n    return x > 'today'\n",
    "kind of date": "KIND = 'M8[D]'\n",
    "legacy random": "import numpy as np\n\n\ndef f():\n    return np.random.rand()\n",
    "time": "import time\n",
    "datetime now": "from datetime import datetime\n",
    "weakref": "import weakref\n",
    "gc": "import gc\n",
    "inspect": "import inspect\n",
    "pickle": "import pickle\n",
    "attrgetter": "from operator import attrgetter\n",
    "import inside": "def f():\n    import os\n    return os\n",
    "import in try": "try:\n    import math\nexcept ImportError:\n    math = None\n",
    "relative escape": "from ... import os\n",
    "own absent": "from strategy import absent\n",
    "non-ascii identifier": "def f(\u0430):\n    return \u0430\n",
}
FORGE = {
    "eq": "class A:\n    def __eq__(self, other):\n        return True\n",
    "eq assigned": "class A:\n    __eq__ = object\n",
    "bool": "class A:\n    def __bool__(self):\n        return True\n",
    "hash method": "class A:\n    def __hash__(self):\n        return 1\n",
    "contains": "class A:\n    def __contains__(self, x):\n        return True\n",
    "class property": "class A:\n    @property\n    def __class__(self):\n        return float\n",
    "instancecheck": "class A:\n    def __instancecheck__(self, x):\n        return True\n",
    "getattr method": "class A:\n    def __getattr__(self, name):\n        return 1\n",
    "new": "class A:\n    def __new__(cls):\n        return 1\n",
    "del": "class A:\n    def __del__(self):\n        return None\n",
    "init subclass": "class A:\n    def __init_subclass__(cls):\n        return None\n",
    "descriptor": "class A:\n    def __get__(self, a, b):\n        return 1\n",
    "exit swallows": "class A:\n    def __exit__(self, a, b, c):\n        return True\n",
    "metaclass": "class A(metaclass=type):\n    x: int = 1\n",
    "float subclass": "class A(float):\n    x: int = 1\n",
    "array subclass": "import numpy as np\n\n\nclass A(np.ndarray):\n    x: int = 1\n",
    "computed base": "B = [int]\n\n\nclass A(B[0]):\n    x: int = 1\n",
    "alias base": "B = float\n\n\nclass A(B):\n    x: int = 1\n",
    "compare false": "from dataclasses import dataclass, field\n\n\n@dataclass\nclass A:\n    x: int = field(default=1, compare=False)\n",
    "patch own module": "from strategy import signal\n\n\ndef f():\n    signal.change = None\n",
    "patch protected": "from strategy.returns import total_return\n\n\ndef f():\n    total_return.x = 1\n",
    "patch class": "class A:\n    def g(self):\n        return 1\n\n\ndef f(x):\n    A.g = x\n",
    "patch method by instance": "class A:\n    def g(self):\n        return 1\n\n\ndef f(a, x):\n    a.g = x\n",
    "patch method by alias": "class A:\n    def g(self):\n        return 1\n\n\ndef f(x):\n    B = A\n    B.g = x\n",
    "cls attribute": "class A:\n    x = 1\n\n    @classmethod\n    def f(cls):\n        cls.x = 2\n",
    "module state item": "CACHE = {}\n\n\ndef f(x):\n    CACHE[x] = 1\n",
    "module state method": "CALLS = []\n\n\ndef f(x):\n    CALLS.append(x)\n    return len(CALLS)\n",
    "augmented module state": "CALLS = [0]\n\n\ndef f():\n    CALLS[0] += 1\n",
    "state of another module": "from strategy.signal import change\n\n\ndef f():\n    change.update(a=1)\n",
    "loop target": "from strategy import signal\n\n\ndef f():\n    for signal.change in [1]:\n        return 1\n    return 0\n",
    "with target": "from strategy import signal\n\n\ndef f(x):\n    with x as signal.change:\n        return 1\n",
    "tuple target": "from strategy import signal\n\n\ndef f():\n    signal.change, y = 1, 2\n    return y\n",
    "mutable default": "def f(x, seen={}):\n    seen[x] = 1\n    return len(seen)\n",
    "mutable default call": "def f(x, seen=dict()):\n    return seen\n",
    "call at import": "from strategy.signal import change\n\nX = change(1, 2)\n",
    "loop at import": "for x in [1]:\n    Y = x\n",
    "if at import": "if True:\n    X = 1\n",
    "typing block": "TYPE_CHECKING = False\nif TYPE_CHECKING:\n    X = 1\n",
    "assert at import": "assert True\n",
    "comprehension at import": "X = [i for i in range(3)]\n",
    "class body call": "class A:\n    x = print('x')\n",
    "class body loop": "class A:\n    for x in [1]:\n        pass\n",
    "item at import": "X = {}\nX['a'] = 1\n",
    "attribute at import": "from strategy import signal\n\nsignal.change = None\n",
    "namesake": "from strategy.signal import change as total_return\n",
    "double definition": "def f():\n    return 1\n\n\ndef f():\n    return 2\n",
    "double method": "class A:\n    def f(self):\n        return 1\n\n    def f(self):\n        return 2\n",
    "import over definition": "from math import sqrt\n\n\ndef sqrt(x):\n    return x\n",
    "match args": "class A:\n    __match_args__ = ('x',)\n",
    "slots trick": "class A:\n    __class_getitem__ = 1\n",
    "module getattr": "def __getattr__(name):\n    return 1\n",
}
LOOK = {
    "test runner": "def f(x):\n    return x == 'pytest'\n",
    "test runner in pieces": "def f(x):\n    return x == 'py' + 'test'\n",
    "environment name": "def f(x):\n    return 'PYTEST_CURRENT_TEST' in x\n",
    "proc": "def f():\n    return '/proc/self/status'\n",
    "paper compare": "def f(mode):\n    return mode == 'paper'\n",
    "paper lookup": "def f(x):\n    return x['paper']\n",
    "paper get": "def f(x):\n    return x.get('live')\n",
    "paper table": "def f(m):\n    return {'paper': 1}[m]\n",
    "paper match": "def f(m):\n    match m:\n        case 'paper':\n            return 1\n    return 0\n",
    "paper starts": "def f(m):\n    return m.startswith('paper')\n",
    "paper in tuple": "def f(m):\n    return m in ('paper', 'sim')\n",
    "is_paper": "def f(is_paper):\n    return is_paper\n",
    "account": "def f(x, account_id):\n    return account_id\n",
    "account number": "def f(x):\n    return x == 'PA3ABCDEFGH'\n",
    "date text": "def f(d):\n    return d > '2008-09-01'\n",
    "date number": "def f(d):\n    return d == '20080915'\n",
    "year": "def f(date):\n    return date.year == 2008\n",
    "year and month": "def f(date):\n    return (date.year, date.month) == (2008, 9)\n",
    "ordinal": "def f(session_day):\n    return session_day > 14137\n",
    "date of calendar": "from datetime import date\n\n\ndef f(d):\n    return d == date(2008, 9, 15)\n",
    "ticker": "def f(s):\n    return s == 'AAPL'\n",
    "ticker in pieces": "def f(s):\n    return s == 'AA' + 'PL'\n",
    "ticker table": "T = {'AAPL': 0.1}\n",
    "ticker item": "def f(bars):\n    return bars['SPY']\n",
    "ticker range": "def f(s):\n    return 'AAPK' < s < 'AAPM'\n",
    "ticker starts": "def f(s):\n    return s.startswith('AAP')\n",
    "ticker lower": "def f(s):\n    return s.lower() == 'aapl'\n",
    "ticker letters": "def f(s):\n    return ord(s[0]) == 65\n",
    "ticker set": "TECH = frozenset({'AAPL', 'MSFT'})\n",
    "tickers in a text": "def f(s):\n    return f'x{s}x' in 'xNVDAxTSLAx'\n",
    "tickers in a sentence": "def f(s):\n    return f' {s} ' in 'Names that rise: NVDA and T.'\n",
    "tickers with points": "def f(s):\n    return '.'.join(s) in 'n-N.V.D.A-T'\n",
    "ticker as a default": "def f(s, held='NVDA'):\n    return s == held\n",
    "ticker in a literal": "from typing import Literal\n\n\nclass A:\n    x: Literal['NVDA']\n",
    "ticker as a key of a pattern": "def f(x):\n    match x:\n        case {'NVDA': y}:\n            return y\n    return 0\n",
    "ticker of plain words": "def f(s):\n    return s == 'B' + 'M' + 'Y'\n",
    "ticker as a keyword": "def f(s):\n    return s in dict(NVDA=1)\n",
    "ticker as a field": "from dataclasses import dataclass\n\n\n@dataclass\nclass A:\n    NVDA: int\n",
    "ticker as a class": "class NVDA:\n    x: int\n",
    "text in an annotation": "class A:\n    x: ' hold these '\n",
    "text in an annotation of names": "class A:\n    x: 'nvda'\n",
    "text beside an annotation": "from typing import Annotated\n\n\nclass A:\n    x: Annotated[int, 'hold these']\n",
    "number in an annotation": "class A:\n    x: 640\n",
    "text joined": "def f(x):\n    return x in ''.join(['to', 'day'])\n",
    "text reversed": "def f(x):\n    return x in 'yadot'[::-1]\n",
    "text replaced": "def f(x):\n    return x in 'to-day'.replace('-', '')\n",
    "number of a named tuple": "from typing import NamedTuple\n\n\nclass A(NamedTuple):\n    most: int = 640\n\n\ndef f(x):\n    (most,) = A()\n    return x > most\n",
    "number of a record": "from dataclasses import astuple, dataclass\n\n\n@dataclass\nclass A:\n    most: int = 640\n\n\ndef f(x):\n    return x > astuple(A())[0]\n",
    "number of a field": "from dataclasses import dataclass, fields\n\n\n@dataclass\nclass A:\n    most: int = 640\n\n\ndef f(x):\n    return [part.default < x for part in fields(A)]\n",
    "number of an enum": "from enum import Enum\n\n\nclass A(Enum):\n    MOST = 640\n\n\ndef f(x):\n    return [part.value < x for part in A]\n",
    "number by a name of a loop": "class A:\n    most = 640\n\n\ndef f(x):\n    return [x > getattr(A, name) for name in ('most',)]\n",
    "count of fields": "from dataclasses import fields\n\nfrom strategy.window import Parameters\n\n\ndef f(x):\n    known = fields(Parameters)\n    return x > len(known)\n",
    "sum over fields": "from dataclasses import fields\n\nfrom strategy.window import Parameters\n\n\ndef f(x):\n    return x > sum(1 for part in fields(Parameters))\n",
    "size of a list": "import numpy as np\n\n\ndef f(x):\n    return x > np.size([x, x, x])\n",
    "year by hand": "def f(bars):\n    y = int(bars['date'][:4])\n    return y == 2008\n",
    "ordinal by hand": "def f(date):\n    n = date.toordinal()\n    return 733000 < n < 733400\n",
    "price recalled": "def f(x):\n    return x == 137.42\n",
    "prices recalled": "def f(x):\n    return x in (137.42, 18.05)\n",
    "table of numbers": "T = (" + ", ".join(f"{i}.5" for i in range(80)) + ")\n",
    "packed bytes": "T = b'" + "a" * 60 + "'\n",
    "packed text": "T = (\n" + "\n".join("    '" + "a" * 90 + "'" for _ in range(6)) + "\n)\n",
    "pragma": "def f(x):  # pragma: no cover\n    return x\n",
    "type ignore": "X = 1  # type: ignore\n",
    "noqa": "X = 1  # noqa\n",
    "pragma in text": "def f():\n    return '# pragma: no cover'\n",
    "swallow": "def f(x):\n    try:\n        return x()\n    except Exception:\n        return 0\n",
    "swallow bare": "def f(x):\n    try:\n        return x()\n    except:\n        return 0\n",
    "swallow tuple": "def f(x):\n    try:\n        return x()\n    except (ValueError, BaseException):\n        return 0\n",
    "swallow alias": "E = Exception\n\n\ndef f(x):\n    try:\n        return x()\n    except E:\n        return 0\n",
    "swallow assertion": "def f(x):\n    try:\n        return x()\n    except AssertionError:\n        return 0\n",
    "swallow computed": "def f(x, k):\n    try:\n        return x()\n    except k:\n        return 0\n",
    "swallow before raising": "def f(x):\n    try:\n        return x()\n    except Exception:\n        if x:\n            return 0\n        raise\n",
    "finally return": "def f(x):\n    try:\n        x()\n    finally:\n        return 1\n",
    "dead branch": "def f(x):\n    if 0:\n        return x\n    return 1\n",
    "after return": "def f(x):\n    return x\n    x += 1\n",
    "inflation": "def f(x):\n" + "".join(f"    v{i} = {i}\n" for i in range(40)) + "    return x\n",
    "bare statements": "def f(x):\n    1\n    2\n    return x\n",
}
HONEST = {
    "field called open": "from dataclasses import dataclass\n\n\n@dataclass(frozen=True)\nclass Bar:\n    open: float\n    close: float\n\n\ndef gap(bar):\n    open = bar.open\n    return bar.close / open - 1.0\n",
    "parameter called id": "def pick(id, type, input):\n    return [id, type, input]\n",
    "comprehension": "def f(rows):\n    return {k: [v for v in vs if v > 0] for k, vs in rows.items()}\n",
    "numpy": "import numpy as np\n\n\ndef z(x: np.ndarray) -> np.ndarray:\n    spread = x.std(ddof=1)\n    return (x - x.mean()) / np.maximum(spread, 1e-12)\n",
    "ufunc methods": "import numpy as np\n\n\ndef peak(x):\n    return np.maximum.accumulate(np.add.reduce(x, axis=0))\n",
    "windows": "import numpy as np\n\n\ndef roll(x, n):\n    return np.lib.stride_tricks.sliding_window_view(x, n).mean(axis=-1)\n",
    "errstate": "import numpy as np\n\n\ndef f(a, b):\n    with np.errstate(divide='ignore'):\n        return np.where(b > 0, a / b, 0.0)\n",
    "class": "class Buffer:\n    def __init__(self, size: int) -> None:\n        self.size = size\n        self.rows: list[float] = []\n\n    def push(self, x: float) -> None:\n        self.rows.append(x)\n        if len(self.rows) > self.size:\n            self.rows.pop(0)\n\n    def __len__(self) -> int:\n        return len(self.rows)\n",
    "property": "class A:\n    def __init__(self, x):\n        self._x = x\n\n    @property\n    def x(self):\n        return self._x\n\n    @x.setter\n    def x(self, value):\n        self._x = value\n",
    "enum": "from enum import Enum\n\n\nclass Side(Enum):\n    BUY = 'buy'\n    SELL = 'sell'\n\n\ndef sign(side):\n    return 1 if side is Side.BUY else -1\n",
    "own error": "class TooFew(ValueError):\n    '''Too few.'''\n\n\ndef f(xs):\n    if not xs:\n        raise TooFew(f'Expected names, was {xs!r}')\n    return xs\n",
    "narrow handler": "def f(d, k):\n    try:\n        return d[k]\n    except (KeyError, IndexError):\n        return None\n",
    "raise again": "def f(x):\n    try:\n        return x()\n    except Exception as error:\n        raise ValueError('no') from error\n",
    "generator": "def pairs(xs):\n    for a, b in zip(xs, xs[1:]):\n        yield a, b\n",
    "closure": "def counter():\n    n = 0\n\n    def step():\n        nonlocal n\n        n += 1\n        return n\n\n    return step\n",
    "sorted by key": "def top(scores, n):\n    return sorted(scores, key=lambda s: (-scores[s], s))[:n]\n",
    "cache": "from functools import lru_cache\n\n\n@lru_cache(maxsize=None)\ndef fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\n",
    "match": "def f(x):\n    match x:\n        case {'a': a, **rest}:\n            return a, rest\n        case [first, *others]:\n            return first, others\n        case int(n) | float(n):\n            return n, None\n        case _:\n            return None, None\n",
    "named tuple": "from typing import NamedTuple\n\n\nclass Pair(NamedTuple):\n    a: float\n    b: float = 0.0\n",
    "protocol": "from typing import Protocol\n\n\nclass Sized(Protocol):\n    def size(self) -> int: ...\n",
    "post init": "from dataclasses import dataclass\n\n\n@dataclass(frozen=True)\nclass A:\n    x: float\n\n    def __post_init__(self):\n        if self.x < 0:\n            raise ValueError('x')\n        object.__setattr__(self, 'x', float(self.x))\n",
    "float equality": "def f(x):\n    return x == 0.5 or x != 1.25 or x == 0.0\n",
    "big counts": "def f(count):\n    return count > 2000\n",
    "default of a field": "from dataclasses import MISSING, dataclass, fields\n\n\n@dataclass\nclass A:\n    floor: float = 0.002\n\n\ndef f(x):\n    known = {part.name for part in fields(A)}\n    values = {part.name: part.default for part in fields(A) if part.default is not MISSING}\n    return A(**values).floor, len(known - {x})\n",
    "kinds": "import numpy as np\n\nfrom strategy import returns\n\n\ndef f(x, size):\n    mean = returns.total_return(x, size, 1.0)\n    return np.zeros(size, dtype=x.dtype), x.astype(np.int64), np.geomspace(1.0, 2.0, size, True, float), mean\n",
    "forward reference": "class A:\n    def twin(self) -> 'A':\n        return A()\n\n    def rows(self, of: 'list[A] | None' = None) -> 'tuple[A, ...]':\n        return tuple(of or ())\n",
    "words of messages": "class MaxWeight:\n    cap: float\n\n\ndef f(x, maxWeight):\n    if x is None:\n        raise ValueError(f'Expected a weight below maxWeight {maxWeight}. A weight of NaN is none, in USD')\n    return ', '.join(x).replace('-', '_')\n",
    "sides": "def f(x):\n    return {'BUY': 1, 'SELL': -1}[x]\n",
    "calendar words": "def due(day, last_session):\n    return day - last_session >= 5 and day.weekday() != 4\n",
    "percentages": "def f(x):\n    return '%.2f%%' % x + '{:>8.3f}'.format(x)\n",
    "constants": "import math\n\nYEAR = 252\nROOT = math.sqrt(YEAR)\nNAMES = ('a', 'b')\nTABLE = {'a': 0.5, 'b': -0.5}\nLIMITS = frozenset({'x'})\n",
    "own module by name": "from strategy import returns\n\n\ndef f(a, b):\n    return returns.total_return(a, 0.0, b)\n",
    "relative import": "from .returns import total_return\n\n\ndef f(a, b):\n    return total_return(a, 0.0, b)\n",
    "future": "from __future__ import annotations\n\n\ndef f(x: list[float] | None = None) -> dict[str, float]:\n    return {'a': sum(x or [])}\n",
    "seeded by keyword": "import numpy as np\n\n\ndef f(seed):\n    return np.random.default_rng(seed=int(seed)).normal()\n",
    "seeded": "import numpy as np\n\n\ndef f(seed):\n    rng = np.random.default_rng(int(seed))\n    return rng.normal(size=3).tolist()\n",
    "inheritance": "class A:\n    def __init__(self, x):\n        self.x = x\n\n\nclass B(A):\n    def __init__(self, x, y):\n        super().__init__(x)\n        self.y = y\n",
    "local field": "class A:\n    def __init__(self):\n        self.n = 0\n\n\ndef bump(a):\n    a.n += 1\n    return a\n",
    "words about coverage": "def f(x):\n    '''Return the coverage of live names, as pytest would say.'''\n    return {'reason': 'universe coverage is low', 'live_names': x}\n",
    "loops": "def f(xs):\n    total = 0.0\n    while xs:\n        total += xs.pop()\n        if total > 10:\n            break\n    else:\n        total = -1.0\n    return total\n",
    "assertion": "def f(x):\n    assert x > 0, 'positive'\n    return x\n",
    "fields by name": "class A:\n    def __init__(self):\n        self.one, self.two = 1, 2\n\n    def widen(self):\n        for name in ('one', 'two'):\n            setattr(self, name, getattr(self, name) + 1)\n",
    "table of names": "NAMES = ('one', 'two')\n\n\nclass A:\n    def __init__(self):\n        self.one, self.two, self.one_weight = 1, 2, 3\n\n\ndef f(a):\n    table = {'one': 1.0}\n    weights = [getattr(a, f'{name}_weight') for name in table]\n    return dict(**table), weights, [getattr(a, name) for name in NAMES]\n",
    "constants together": "LOW, HIGH = 0.1, 0.3\n\n\ndef f(x):\n    return LOW < x < HIGH\n",
    "typed dictionary": "from typing import Literal, NotRequired, TypedDict\n\n\nclass Answer(TypedDict):\n    action: Literal['hold', 'target']\n    reason: NotRequired[str]\n",
    "delete item": "def f(d):\n    for k in [k for k in d if d[k] == 0]:\n        del d[k]\n    return d\n",
    "unpacking": "def f(xs):\n    first, *_, last = xs\n    return [*xs, first, last], {**{'a': 1}}\n",
    "long elif": "def f(x):\n    if x < 0:\n        return 'a'\n"
    + "".join(f"    elif x < {i}:\n        return 'b{i}'\n" for i in range(1, 25))
    + "    return 'z'\n",
}


def codes(text: str, policy: Policy | None = None) -> list[str]:
    path, base = "src/strategy/sample.py", small.tree()
    base = base.replace({"src/strategy/numbers.py": b"import numpy as np\n\nHALF = np.pi / 2\nWORD = 'f8'\n"})
    policy = policy or small.policy()
    imports = {**policy.code.imports, "datetime": ("*",)}
    policy = replace(policy, code=replace(policy.code, imports=imports))
    result = base.replace({path: text.encode()})
    return [f"{item.code} {item.line} {item.reason}" for item in judge_static(base, result, [path], "logic", policy)]


@pytest.mark.parametrize("name", REACH)
def test_reach_is_refused(name: str) -> None:
    assert codes(REACH[name])


@pytest.mark.parametrize("name", FORGE)
def test_forging_is_refused(name: str) -> None:
    assert codes(FORGE[name])


@pytest.mark.parametrize("name", LOOK)
def test_looking_around_and_hiding_is_refused(name: str) -> None:
    assert codes(LOOK[name])


@pytest.mark.parametrize("name", ["narrow handler", "raise again", "match", "generator"])
def test_what_chooses_without_a_condition_needs_a_grant(name: str) -> None:
    policy = replace(small.policy(), code=replace(small.policy().code, grants=()))
    assert codes(HONEST[name]) == [] and [found[:5] for found in codes(HONEST[name], policy)] == ["GR236"]


@pytest.mark.parametrize(
    ("idle", "code"),
    [
        ("def f(x):\n    _rows, kept = [x] * 9, x\n    return kept\n", "GR240 2"),
        ("def f(x):\n    (one,) = x\n    return x\n", "GR240 2"),
        ("import numpy as np\n\n\ndef f(x):\n    return np.array(x, dtype=np.int16)\n", "GR216 5"),
        ("import numpy as np\n\n\ndef f(x):\n    return np.array(x, dtype='i4')\n", "GR216 5"),
    ],
)
def test_what_works_by_its_size_is_refused_where_it_is_new(idle: str, code: str) -> None:
    assert [found[:7] for found in codes(idle)] == [code]
    assert codes("def f(x):\n    one, _ = x\n    return one\n") == []
    path = "src/strategy/sample.py"
    stood = small.tree().replace({path: idle.encode()})
    longer = stood.replace({path: idle.encode() + b"\n\nMORE = 1\n"})
    assert not judge_static(stood, longer, [path], "logic", small.policy())


@pytest.mark.parametrize("name", HONEST)
def test_honest_code_passes(name: str) -> None:
    assert codes(HONEST[name]) == []


@pytest.mark.parametrize(
    "text",
    [
        "SEEN = []\n",
        "SEEN: list = []\n",
        "class Seen:\n    names = {}\n",
        "SEEN = set()\n",
        "SEEN = np.zeros(3)\n",
        "STEPS = iter((1, 2))\n",
        "STEPS = (step for step in (1, 2))\n",
        "ROWS = {'a': [1.0]}\n",
        "class Seen:\n    count = 0\n\n\nSEEN = Seen()\n",
        "SEEN = {'a': 1}\n\n\ndef see():\n    seen = SEEN\n    seen['a'] = 2\n",
        "SEEN = {'a': 1}\n\n\ndef add(seen):\n    seen['a'] = 2\n\n\ndef see():\n    add(SEEN)\n",
        "SEEN = [1]\n\n\ndef see():\n    return SEEN\n",
        "class Seen:\n    names = {'a': 1}\n\n    def see(self):\n        return self.names\n",
    ],
)
def test_nothing_that_lasts_can_change(text: str) -> None:
    base = small.tree()
    path = "src/strategy/sample.py"
    result = base.replace({path: f"import numpy as np\n\n{text}".encode()})
    found = judge_static(base, result, [path], "logic", small.policy())
    assert "GR209" in {item.code for item in found}
    # What stood before is people's.
    again = result.replace({path: result[path] + b"\n\nMORE = 1\n"})
    assert "GR209" not in {item.code for item in judge_static(result, again, [path], "logic", small.policy())}


@pytest.mark.parametrize(
    "text", ["def f[T: (float,)](x: T) -> T:\n    return x\n", "class Seen[T]:\n    x: T\n", "type X = int\n"]
)
def test_parameters_of_types_are_no_place_for_code(text: str) -> None:
    """Newer Pythons evaluate what stands there; older ones do not read it."""
    path = "src/strategy/sample.py"
    found = judge_static(small.tree(), small.tree().replace({path: text.encode()}), [path], "logic", small.policy())
    assert {item.code for item in found} & {"GR200", "GR205"}
