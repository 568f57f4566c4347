"""Pages of an episode and of a leaderboard: one HTML file each, no outside host, readable without scripts.

Everything that came from an agent or an arena is escaped text. The one script only opens and closes steps;
the content policy names its hash and allows nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from oomrl.arenas.engine import Json
from oomrl.arenas.log import EpisodeLog

_STYLE = """
:root{color-scheme:light dark;--line:#8885;--good:#1a7f37;--bad:#b42318;--soft:#8882}
body{font:15px/1.5 system-ui,sans-serif;margin:0 auto;max-width:72rem;padding:1rem}
h1{font-size:1.3rem;margin:.2rem 0}h2{font-size:1.05rem;margin:1.2rem 0 .3rem}
table{border-collapse:collapse;width:100%}td,th{border-bottom:1px solid var(--line);padding:.2rem .5rem;
text-align:left;vertical-align:top}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
code,pre{font:13px/1.45 ui-monospace,monospace;white-space:pre-wrap;overflow-wrap:anywhere;margin:0}
details{border:1px solid var(--line);border-radius:.4rem;margin:.35rem 0;padding:.3rem .6rem}
details[open]{background:var(--soft)}summary{cursor:pointer}.error{color:var(--bad);font-weight:600}
.bar{background:var(--soft);height:.55rem;min-width:8rem}.bar
i{display:block;height:100%;background:var(--good)} .neg
i{background:var(--bad)}nav{position:sticky;top:0;background:Canvas;padding:.4rem 0;z-index:1}
button{font:inherit;padding:.2rem .8rem;margin-right:.4rem}
svg{width:100%;height:9rem;background:var(--soft)}
.cols{display:grid;grid-template-columns:repeat(auto-fit,minmax(20rem,1fr));gap:1rem}
"""

_SCRIPT = """
(function(){var s=[].slice.call(document.querySelectorAll("details.step")),n=0;
function show(i){n=Math.max(0,Math.min(s.length-1,i));s.forEach(function(d,k){d.open=k===n});
document.getElementById("at").textContent="step "+n+" of "+(s.length-1);
s[n].scrollIntoView({block:"nearest"})}
document.getElementById("nav").hidden=false;
document.getElementById("first").onclick=function(){show(0)};
document.getElementById("back").onclick=function(){show(n-1)};
document.getElementById("next").onclick=function(){show(n+1)};
document.getElementById("last").onclick=function(){show(s.length-1)};
document.addEventListener("keydown",function(e){if(e.key==="ArrowRight")show(n+1);
if(e.key==="ArrowLeft")show(n-1)});show(0)})();
"""
MAX_VALUE = 600


def episode_page(log: EpisodeLog) -> str:
    """Return the page of a log: the score, its parts, the course of reward, and what each step changed."""
    records = log.records()
    start = records[0]["body"]
    steps = [record["body"] for record in records if record["kind"] == "step"]
    ends = [record["body"] for record in records if record["kind"] == "end"]
    title = f"{start['arena']} {start['version']}: {start['task']}"
    body = [
        f"<h1>{escape(title)}</h1>",
        f"<p>Agent <b>{escape(str(start['agent']))}</b>, seed {escape(str(start['seed']))}, ",
        f"{len(steps)} steps. Log <code>{escape(log.head)}</code></p>",
    ]
    if ends:
        body.append(_ending(ends[0]))
    body.append("<h2>Reward, step by step</h2>")
    body.append(_chart([step["observation"]["reward"] or 0.0 for step in steps]))
    body.append(
        '<nav id="nav" hidden><button id="first">First</button><button id="back">Back</button>'
        '<button id="next">Next</button><button id="last">Last</button> <span id="at"></span> '
        "(arrow keys work)</nav>"
    )
    body.append(_step(0, None, {}, start["observation"], ""))
    before = start["observation"]["data"]
    for number, step in enumerate(steps, start=1):
        body.append(_step(number, step["action"], before, step["observation"], _note(step["note"])))
        before = step["observation"]["data"]
    return _page(title, "".join(body), _SCRIPT)


def leaderboard_page(runs: Sequence[Json], certificates: Iterable[Json] = ()) -> str:
    """Return a leaderboard of `Run.to_json()` records: agents by arena, best first, with intervals and failures."""
    body = ["<h1>Arenas: leaderboard</h1>", "<p>Scores are means over seeds of the mean over tasks.</p>"]
    for arena, version in dict.fromkeys((run["arena"], run["version"]) for run in runs):
        rows = [run for run in runs if (run["arena"], run["version"]) == (arena, version)]
        rows.sort(key=lambda run: -run["score"]["mean"])
        body.append(f"<h2>{escape(arena)} {escape(version)}</h2><table><tr><th>agent</th>")
        body.append('<th class="n">score</th><th class="n">95 % interval</th><th class="n">seeds</th>')
        body.append('<th class="n">failures</th><th class="n">refused actions</th></tr>')
        for run in rows:
            score = run["score"]
            bounds = "-" if score["low"] is None else f"{score['low']:.4f} to {score['high']:.4f}"
            body.append(
                f'<tr><td>{escape(run["agent"])}</td><td class="n">{score["mean"]:.4f}</td>'
                f'<td class="n">{bounds}</td><td class="n">{score["count"]}</td>'
                f'<td class="n">{run["failures"]}</td><td class="n">{run["refused"]}</td></tr>'
            )
        body.append("</table>")
    shown = [certificate["body"] for certificate in certificates]
    if shown:
        body.append("<h2>Certificates</h2><table><tr><th>model</th><th>qualified</th><th>expires</th></tr>")
        for item in shown:
            verdict = "yes" if item["qualified"] else "no"
            body.append(f"<tr><td>{escape(str(item['model']))}</td><td>{verdict}</td>")
            body.append(f"<td>{escape(str(item['expires']))}</td></tr>")
        body.append("</table>")
    return _page("Arenas: leaderboard", "".join(body), "")


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
    rows = [f"<h2>Score {end['score']:.4f}</h2>"]
    if end["failure"]:
        rows.append(f'<p class="error">Ended by the agent\'s failure: {escape(str(end["failure"]))}</p>')
    rows.append(f"<p>Total reward {end['total_reward']:.4f}, refused actions {end['refused']}.</p>")
    rows.append(_tree(end["grade"]))
    return "".join(rows)


def _tree(part: Json) -> str:
    """Return a rubric tree as a table: weight, value, contribution and a bar."""
    rows = ['<table><tr><th>part</th><th class="n">weight</th><th class="n">value</th>']
    rows.append('<th class="n">contributes</th><th></th></tr>')

    def add(node: Json, depth: int) -> None:
        contributes = node["weight"] * node["total"]
        width = min(100.0, abs(contributes) * 100)
        side = " neg" if contributes < 0 else ""
        rows.append(
            f"<tr><td>{'&nbsp;' * 4 * depth}{escape(str(node['name']))}</td>"
            f'<td class="n">{node["weight"]:g}</td><td class="n">{node["total"]:.4f}</td>'
            f'<td class="n">{contributes:.4f}</td>'
            f'<td><div class="bar{side}"><i style="width:{width:.1f}%"></i></div></td></tr>'
        )
        for child in node.get("parts", []):
            add(child, depth + 1)

    add(part, 0)
    rows.append("</table>")
    return "".join(rows)


def _chart(rewards: Sequence[float]) -> str:
    """Return the running sum of reward as a line."""
    total, sums = 0.0, [0.0]
    for reward in rewards:
        total += reward
        sums.append(total)
    low, high = min(sums), max(sums)
    span = (high - low) or 1.0
    points = " ".join(
        f"{1000 * index / max(1, len(sums) - 1):.1f},{190 - 180 * (value - low) / span:.1f}"
        for index, value in enumerate(sums)
    )
    return (
        '<svg viewBox="0 0 1000 200" preserveAspectRatio="none" role="img">'
        f"<title>Sum of reward from {sums[0]:.4f} to {sums[-1]:.4f}, between {low:.4f} and {high:.4f}</title>"
        f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-width="2"/></svg>'
    )


def _step(number: int, action: Any, before: Json, observation: Json, note: str) -> str:
    data, reward = observation["data"], observation["reward"]
    errors = data.get("error") or "; ".join((data.get("errors") or {}).values())
    told = f'<p class="error">{escape(str(errors))}</p>' if errors else ""
    sent = escape(json.dumps(action, indent=1))
    said = "start" if action is None else _short(action)
    paid = "" if reward is None else f" &rarr; reward {reward:.4f}"
    parts = _tree(observation["parts"]) if observation["parts"] else ""
    old, new = dict(_flat(before)), dict(_flat(data))
    changed = [(path, old.get(path), value) for path, value in new.items() if old.get(path) != value]
    gone = [(path, value, None) for path, value in old.items() if path not in new]
    rows = "".join(
        f"<tr><td><code>{escape(path)}</code></td><td><code>{escape(_text(was))}</code></td>"
        f"<td><code>{escape(_text(now))}</code></td></tr>"
        for path, was, now in changed + gone
    )
    return (
        f'<details class="step"><summary>{number}. <code>{escape(said)}</code>{paid}</summary>{told}{note}'
        f'<div class="cols"><div><h2>Action</h2><pre>{sent}</pre>{parts}</div>'
        f"<div><h2>What changed</h2><table><tr><th>field</th><th>before</th><th>now</th></tr>{rows}</table>"
        "</div></div></details>"
    )


def _note(note: Json) -> str:
    return f"<p><code>{escape(json.dumps(note, sort_keys=True)[:MAX_VALUE])}</code></p>" if note else ""


def _short(action: Any) -> str:
    text = json.dumps(action, sort_keys=True)
    return text if len(text) <= 110 else text[:107] + "..."


def _text(value: Any) -> str:
    return "" if value is None else str(value)[:MAX_VALUE]


def _flat(value: Any, path: str = "") -> Iterable[tuple[str, Any]]:
    """Yield each leaf of nested JSON with its path."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _flat(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _flat(item, f"{path}[{index}]")
    else:
        yield path, value
