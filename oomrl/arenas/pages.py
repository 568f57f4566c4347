"""Pages of an episode and of a leaderboard: one HTML file each, no outside host, readable without scripts.

Everything that came from an agent or an arena is escaped text. The one script only chooses which step is shown and
moves the marks in the charts; the content policy names its hash and allows nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from oomrl.arenas.engine import Json
from oomrl.arenas.log import EpisodeLog

_STYLE = """
:root{color-scheme:light dark;--line:#8883;--good:#1a7f37;--bad:#c0362c;--mark:#2f6fd0;--soft:#8881;--dim:#777}
*{box-sizing:border-box}
body{font:15px/1.5 system-ui,sans-serif;margin:0 auto;max-width:84rem;padding:1rem 1.2rem 3rem}
h1{font-size:1.35rem;margin:.2rem 0}h2{font-size:1.05rem;margin:1.4rem 0 .4rem}h3{font-size:.95rem;margin:.2rem 0 .3rem}
p{margin:.3rem 0}.dim{color:var(--dim)}
table{border-collapse:collapse;width:100%}
td>code{display:block}td+td{min-width:5.5rem}
td,th{border-bottom:1px solid var(--line);padding:.2rem .5rem;text-align:left;vertical-align:top}
th{font-weight:600;color:var(--dim);font-size:.85rem}
.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
code,pre{font:13px/1.45 ui-monospace,monospace;white-space:pre-wrap;overflow-wrap:anywhere;margin:0}
.score{display:inline-block;font-size:1.5rem;font-weight:700;padding:.1rem .6rem;border:1px solid var(--line);
border-radius:.4rem;margin-right:.6rem}
.error{color:var(--bad);font-weight:600}
.bar{position:relative;height:.7rem;min-width:7rem;background:var(--soft)}
.bar i{position:absolute;top:0;bottom:0;background:var(--good)}.bar .neg{background:var(--bad)}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(17rem,1fr));gap:.8rem}
figure{margin:0;border:1px solid var(--line);border-radius:.4rem;padding:.3rem .6rem .5rem}
figcaption{display:flex;justify-content:space-between;font-size:.8rem;gap:0 .5rem;flex-wrap:wrap}
figure svg{display:block;width:100%;height:4.5rem;overflow:visible}
.follow{display:grid;grid-template-columns:minmax(15rem,22rem) minmax(0,1fr);gap:1rem;align-items:start}
.list{max-height:85vh;overflow:auto;position:sticky;top:3.2rem;border:1px solid var(--line);border-radius:.4rem}
.list a{display:grid;grid-template-columns:2.2rem 1fr auto;gap:.3rem;padding:.12rem .5rem;text-decoration:none;
color:inherit;font-size:.85rem;border-left:3px solid transparent}
.list a.on{background:var(--soft);border-left-color:var(--mark)}
.list span:nth-child(2){overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
details.step{scroll-margin-top:3.5rem}
details.step{border:1px solid var(--line);border-radius:.4rem;margin:0 0 .35rem;padding:.4rem .8rem}
summary{cursor:pointer;font-weight:600}
.cols{display:grid;grid-template-columns:minmax(24rem,2fr) minmax(0,3fr);gap:1.8rem;margin-top:.5rem}
td.path{width:38%}.cols .bar{min-width:2rem}.cols td+td{min-width:0}
nav{position:sticky;top:0;background:Canvas;padding:.5rem 0;z-index:1}
button{font:inherit;padding:.15rem .8rem;margin-right:.3rem}
@media(max-width:75rem){.cols{grid-template-columns:minmax(0,1fr)}}
@media(max-width:50rem){.follow{grid-template-columns:1fr}.list{position:static;max-height:14rem}}
"""

_SCRIPT = """
(function(){var all=function(q){return [].slice.call(document.querySelectorAll(q))},
s=all("details.step"),l=all(".list a"),marks=all("line.at"),n=0,timer=0,
by=function(i){return document.getElementById(i)};
function show(i){n=Math.max(0,Math.min(s.length-1,i));
s.forEach(function(d,k){d.hidden=k!==n;d.open=k===n});
l.forEach(function(a,k){a.className=k===n?"on":""});
marks.forEach(function(m){var x=1000*n/Math.max(1,s.length-1);m.setAttribute("x1",x);m.setAttribute("x2",x)});
by("at").textContent="step "+n+" of "+(s.length-1);
var box=l[n].parentNode,top=l[n].offsetTop-box.offsetTop;
if(top<box.scrollTop||top>box.scrollTop+box.clientHeight-30)box.scrollTop=top-box.clientHeight/2}
function stop(){clearInterval(timer);timer=0;by("play").textContent="Play"}
function on(id,f){by(id).onclick=function(){stop();f()}}
by("nav").hidden=false;
on("first",function(){show(0)});on("back",function(){show(n-1)});on("next",function(){show(n+1)});
on("last",function(){show(s.length-1)});
by("play").onclick=function(){if(timer)return stop();by("play").textContent="Stop";
timer=setInterval(function(){if(n===s.length-1)return stop();show(n+1)},900)};
l.forEach(function(a,k){a.onclick=function(e){e.preventDefault();stop();show(k)}});
document.addEventListener("keydown",function(e){if(e.key==="ArrowRight"){stop();show(n+1)}
if(e.key==="ArrowLeft"){stop();show(n-1)}});
show(+(location.hash.match(/^#s(\\d+)$/)||[0,0])[1])})();
"""
_SLICE = re.compile(r"agent_observations\.(\w+)\.(.+)")
MAX_VALUE = 600
MAX_SHORT = 90


def episode_page(log: EpisodeLog, watch: Sequence[str] = ()) -> str:
    """Return the page of a log: the score and its parts, charts, and each step with what it changed.

    `watch` names the figures of an observation to chart, as paths like `nav` or `resources.compute`.
    """
    records = log.records()
    start = records[0]["body"]
    steps = [record["body"] for record in records if record["kind"] == "step"]
    ends = [record["body"] for record in records if record["kind"] == "end"]
    title = f"{start['arena']} {start['version']}: {start['task']}"
    seen = [start["observation"], *(step["observation"] for step in steps)]
    body = [f"<h1>{escape(title)}</h1>", *(_ending(end) for end in ends)]
    body.append(
        f"<p>Agent <b>{escape(str(start['agent']))}</b>, seed {escape(str(start['seed']))}, {len(steps)} steps. "
        f'<span class="dim">Log <code>{escape(log.head)}</code></span></p>'
    )
    body.append('<div class="charts">')
    body.append(_chart("sum of rewards", _running([one["reward"] or 0.0 for one in seen])))
    body.extend(_chart(path, values) for path, values in _watched(seen, watch))
    body.append("</div>")
    body.extend(f"<h2>What the score is made of</h2>{_tree(end['grade'])}" for end in ends)
    body.append("<h2>Step by step</h2>")
    body.append(
        '<nav id="nav" hidden><button id="first">First</button><button id="back">Back</button>'
        '<button id="next">Next</button><button id="last">Last</button><button id="play">Play</button> '
        '<b id="at"></b> <span class="dim">arrow keys work</span></nav>'
    )
    actions = [None, *(step["action"] for step in steps)]
    body.append('<div class="follow"><div class="list">')
    body.extend(_line(number, action, one) for number, (action, one) in enumerate(zip(actions, seen, strict=True)))
    body.append("</div><div>")
    notes = ["", *(_note(step["note"]) for step in steps)]
    before: Json = {}
    for number, (action, one, note) in enumerate(zip(actions, seen, notes, strict=True)):
        body.append(_step(number, action, before, one, note))
        before = one["data"]
    body.append("</div></div>")
    return _page(title, "".join(body), _SCRIPT)


def leaderboard_page(runs: Sequence[Json], certified: Sequence[Json] = ()) -> str:
    """Return a leaderboard of `Run.to_json()` records: agents by arena, best first, with intervals and failures.

    `certified` holds the bodies of certificates, which are shown below.
    """
    body = ["<h1>Arenas: leaderboard</h1>"]
    body.append('<p class="dim">Scores are means over seeds of the mean over tasks, with 95 % intervals.</p>')
    for arena, version in dict.fromkeys((run["arena"], run["version"]) for run in runs):
        rows = [run for run in runs if (run["arena"], run["version"]) == (arena, version)]
        rows.sort(key=lambda run: -run["score"]["mean"])
        body.append(f"<h2>{escape(arena)} {escape(version)}</h2><table><tr><th></th><th>agent</th>")
        body.append('<th class="n">score</th><th></th><th class="n">95 % interval</th><th class="n">seeds</th>')
        body.append('<th class="n">failures</th><th class="n">refused actions</th></tr>')
        low = min([0.0, *(run["score"]["mean"] for run in rows)])
        for rank, run in enumerate(rows, start=1):
            score = run["score"]
            bounds = "-" if score["low"] is None else f"{score['low']:.4f} to {score['high']:.4f}"
            failed = ' class="n error"' if run["failures"] else ' class="n"'
            body.append(
                f'<tr><td class="dim">{rank}</td><td>{escape(run["agent"])}</td>'
                f'<td class="n"><b>{score["mean"]:.4f}</b></td><td>{_bar(score["mean"], low, 1.0)}</td>'
                f'<td class="n">{bounds}</td><td class="n">{score["count"]}</td>'
                f'<td{failed}>{run["failures"]}</td><td class="n">{run["refused"]}</td></tr>'
            )
        body.append("</table>")
        body.append(_habits([run for run in rows if run.get("habits")]))
    if certified:
        body.append("<h2>Certificates</h2><table><tr><th>model</th><th>qualified</th><th>above the heuristic by</th>")
        body.append("<th>expires</th></tr>")
        for item in certified:
            verdict = "yes" if item["qualified"] else "no"
            gaps = ", ".join(f"{one['arena']} {one['difference']['mean']:+.3f}" for one in item["arenas"])
            body.append(f"<tr><td>{escape(str(item['model']))}</td><td>{verdict}</td><td>{escape(gaps)}</td>")
            body.append(f"<td>{escape(str(item['expires'])[:10])}</td></tr>")
        body.append("</table>")
    return _page("Arenas: leaderboard", "".join(body), "")


def _habits(runs: Sequence[Json]) -> str:
    """Return how agents search, what thinking buys them and what they do after losses, as one table."""
    if not runs:
        return ""
    rows = []
    for run in runs:
        search, effort, after = (run["habits"].get(name) for name in ("search", "effort", "after_losses"))
        cells = [f"{search[name]:.2f}" for name in ("tries", "breadth", "depth")] if search else ["-"] * 3
        related = "-"
        if effort:
            related = (
                f"{effort['rank_correlation']:+.2f} ({effort['interval'][0]:+.2f} to {effort['interval'][1]:+.2f})"
            )
        cells += [related, str(after["losses"]) if after else "-"]
        for name in ("stopped", "repeated", "smarter", "elsewhere"):
            cells.append("-" if not after or after[name] is None else f"{after[name]:.0%}")
        numbers = "".join(f'<td class="n">{cell}</td>' for cell in cells)
        rows.append(f"<tr><td>{escape(run['agent'])}</td>{numbers}</tr>")
    names = (
        "tries",
        "breadth",
        "depth",
        "score against tokens",
        "losses",
        "stopped",
        "repeated",
        "smarter",
        "elsewhere",
    )
    head = "".join(f'<th class="n">{name}</th>' for name in names)
    return f"<h3>Habits</h3><table><tr><th>agent</th>{head}</tr>{''.join(rows)}</table>"


def _page(title: str, body: str, script: str) -> str:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    allow = f"'sha256-{digest}'" if script else "'none'"
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src {allow}"
    tail = f"<script>{script}</script>" if script else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>{body}{tail}</body></html>\n"
    )


def _ending(end: Json) -> str:
    rows = [f'<p><span class="score">{end["score"]:.4f}</span>']
    rows.append(f"total reward {end['total_reward']:.4f}, refused actions {end['refused']}</p>")
    if end["failure"]:
        rows.append(f'<p class="error">Ended by the agent\'s failure: {escape(str(end["failure"]))}</p>')
    return "".join(rows)


def _bar(value: float, low: float, high: float) -> str:
    """Return a bar from zero to a value on the scale low..high."""
    span = (high - low) or 1.0
    start, end = sorted((min(max(edge, low), high) - low) / span * 100 for edge in (0.0, value))
    side = ' class="neg"' if value < 0 else ""
    return f'<div class="bar"><i{side} style="left:{start:.1f}%;width:{end - start:.1f}%"></i></div>'


def _tree(part: Json) -> str:
    """Return a rubric tree as a table: weight, value, contribution to the whole and a bar of that."""
    found: list[tuple[int, Json, float]] = []

    def add(node: Json, depth: int, factor: float) -> None:
        found.append((depth, node, factor * node["total"] + 0.0))
        for child in node.get("parts", []):
            add(child, depth + 1, factor * child["weight"])

    add(part, 0, 1.0)
    low, high = (edge(0.0, *(value for _, _, value in found)) for edge in (min, max))
    rows = [
        f"<tr><td>{'&nbsp;' * 4 * depth}{escape(str(node['name']).replace('_', ' '))}</td>"
        f'<td class="n dim">{node["weight"]:g}</td><td class="n">{node["total"]:.4f}</td>'
        f'<td class="n"><b>{value:.4f}</b></td><td>{_bar(value, low, high)}</td></tr>'
        for depth, node, value in found
    ]
    head = '<tr><th>part</th><th class="n">weight</th><th class="n">value</th><th class="n">adds</th><th></th></tr>'
    return f"<table>{head}{''.join(rows)}</table>"


def _running(rewards: Sequence[float]) -> list[float]:
    total, sums = 0.0, []
    for reward in rewards:
        total += reward
        sums.append(total)
    return sums


def _watched(seen: Sequence[Json], watch: Sequence[str]) -> Iterable[tuple[str, list[float]]]:
    """Yield the watched figures that every observation holds and that change."""
    flat = [dict(_flat(one["data"])) for one in seen]
    for path in watch:
        values = [one.get(path) for one in flat]
        if all(isinstance(value, int | float) for value in values) and len(set(values)) > 1:
            yield path, [float(value) for value in values if value is not None]


def _chart(name: str, values: Sequence[float]) -> str:
    """Return a line over steps with its lowest, highest and last value, and a mark for the step shown."""
    low, high = min(values), max(values)
    span = (high - low) or 1.0

    def height(value: float) -> float:
        return 95 - 90 * (value - low) / span

    points = " ".join(f"{1000 * k / max(1, len(values) - 1):.1f},{height(v):.1f}" for k, v in enumerate(values))
    zero = ""
    if low < 0 < high:
        zero = f'<line x1="0" x2="1000" y1="{height(0):.1f}" y2="{height(0):.1f}" stroke="currentColor" opacity=".3"/>'
    return (
        f"<figure><figcaption><b>{escape(name.replace('_', ' '))}</b>"
        f'<span class="dim">{low:.3g} to {high:.3g}, at last {values[-1]:.3g}</span></figcaption>'
        '<svg viewBox="0 0 1000 100" preserveAspectRatio="none" role="img">'
        f"<title>{escape(name)}: from {values[0]:.4g} to {values[-1]:.4g}</title>{zero}"
        f'<polyline points="{points}" fill="none" stroke="var(--mark)" stroke-width="2" '
        'vector-effect="non-scaling-stroke"/><line class="at" x1="0" x2="0" y1="0" y2="100" stroke="currentColor" '
        'opacity=".5" vector-effect="non-scaling-stroke"/></svg></figure>'
    )


def _line(number: int, action: Any, observation: Json) -> str:
    """Return a step's line in the list."""
    reward = observation["reward"]
    paid = "" if reward is None else f"{reward:+.4f}"
    side = ' class="error"' if _refusal(observation["data"]) else ""
    return (
        f'<a href="#s{number}"><span class="n dim">{number}</span><span{side} title="{escape(_short(action))}">'
        f"{escape(_short(action))}</span>"
        f'<span class="n">{paid}</span></a>'
    )


def _refusal(data: Json) -> str:
    return str(data.get("error") or "; ".join(map(str, (data.get("errors") or {}).values())))


def _step(number: int, action: Any, before: Json, observation: Json, note: str) -> str:
    data, reward = observation["data"], observation["reward"]
    refusal = _refusal(data)
    told = f'<p class="error">Refused: {escape(refusal)}</p>' if refusal else ""
    paid = "" if reward is None else f" &rarr; reward {reward:.4f}"
    parts = f"<h3>Reward</h3>{_tree(observation['parts'])}" if observation["parts"] else ""
    sent = "" if action is None else f"<h3>Action</h3>{_fields(_flat(action))}"
    old, new = dict(_flat(before)), dict(_flat(data))
    if action is None:
        seen = f"<h3>What the agent sees first</h3>{_fields(new.items())}"
    else:
        changed = [(path, (old.get(path), value)) for path, value in new.items() if old.get(path) != value]
        gone = [(path, (value, None)) for path, value in old.items() if path not in new]
        rows = "".join(
            f'<tr><td class="path"><code>{escape(path)}</code></td><td><code>{escape(_text(was))}</code></td>'
            f"<td><code>{escape(_text(now))}</code></td></tr>"
            for path, (was, now) in _gathered(changed + gone)
        )
        head = "<tr><th>field</th><th>before</th><th>now</th></tr>"
        seen = f"<h3>What changed</h3><table>{head}{rows}</table>"
    left = f"<div>{sent}{parts}</div>" if sent or parts else ""
    return (
        f'<details class="step" id="s{number}"><summary>{number}. {escape(_short(action))}{paid}</summary>{told}{note}'
        f'<div class="cols">{left}<div>{seen}</div></div></details>'
    )


def _fields(pairs: Iterable[tuple[str, Any]]) -> str:
    """Return paths and values as a table; text of several lines keeps them."""
    rows = (
        f'<tr><td class="path"><code>{escape(path)}</code></td><td><pre>{escape(_text(value))}</pre></td></tr>'
        for path, value in _gathered(pairs)
    )
    return f"<table>{''.join(rows)}</table>"


def _gathered(pairs: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Return paths and values with what several agents see alike in one row that names them."""
    found: dict[tuple[str, str], tuple[Any, list[str]]] = {}
    for path, value in pairs:
        seen = _SLICE.match(path)
        rest = seen[2] if seen else path
        found.setdefault((rest, repr(value)), (value, []))[1].extend([seen[1]] if seen else [])
    return [
        (f"{rest} (seen by {', '.join(seers)})" if seers else rest, value)
        for (rest, _), (value, seers) in found.items()
    ]


def _note(note: Json) -> str:
    return f'<p class="dim"><code>{escape(json.dumps(note, sort_keys=True)[:MAX_VALUE])}</code></p>' if note else ""


def _short(action: Any) -> str:
    """Return an action in a line: what is done first, then the other values."""
    if action is None:
        return "start"
    leaves = list(_flat(action))
    leaves.sort(key=lambda leaf: {"role": 0, "action": 1, "tool": 1}.get(leaf[0], 2))
    words = []
    for path, value in leaves:
        name = path.rpartition(".")[2]
        if isinstance(value, float):
            words += [f"{name} {value:.3g}"] if value else []
        elif value not in (None, ""):
            words.append(str(value).replace("\n", " ")[:40])
    text = " ".join(words) or json.dumps(action)
    return text if len(text) <= MAX_SHORT else text[: MAX_SHORT - 3] + "..."


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return "" if value is None else str(value)[:MAX_VALUE]


def _flat(value: Any, path: str = "") -> Iterable[tuple[str, Any]]:
    """Yield each leaf of nested JSON with its path."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _flat(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and value and not any(isinstance(item, dict | list) for item in value):
        yield path, ", ".join(_text(item) for item in value)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _flat(item, f"{path}[{index}]")
    else:
        yield path, value
