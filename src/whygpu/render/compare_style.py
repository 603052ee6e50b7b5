"""How the HTML of a comparison looks, on a screen, light or dark, and on paper."""

from __future__ import annotations

from whygpu.render.compare_svg import COLORS

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""Nothing is loaded and nothing is run, whatever a name contains."""

LIGHT = {
    "text": "#1c1f23", "back": "#ffffff", "soft": "#59636e", "rule": "#d7dce1",
    "good": "#1a7f37", "bad": "#c21c28", "open": "#8a5a00", "tint": "#fdecec", "bar": "#3b76ad",
    "mark0": "#0b62a4", "mark1": "#b54708", "mark2": "#157347", "mark3": "#7e3fb0",
    "mark4": "#806600", "mark5": "#0c7784", "mark6": "#b4236b", "mark7": "#565f69",
}  # fmt: skip
DARK = {
    "text": "#e6e9ec", "back": "#16191d", "soft": "#a3adb7", "rule": "#363d45",
    "good": "#56c878", "bad": "#ff8079", "open": "#dcb13c", "tint": "#33201f", "bar": "#6ba3dc",
    "mark0": "#6bb3f0", "mark1": "#f0a35c", "mark2": "#5fd39a", "mark3": "#c99af0",
    "mark4": "#d9c04a", "mark5": "#5fd0d8", "mark6": "#f08ab8", "mark7": "#b8c0c8",
}  # fmt: skip


def _variables(colors: dict[str, str]) -> str:
    return " ".join(f"--{name}: {color};" for name, color in colors.items())


_MARKS = "\n".join(f".mark{number} {{ fill: var(--mark{number}); }}" for number in range(COLORS))

STYLE = f"""
:root {{ color-scheme: light dark; {_variables(LIGHT)} }}
@media (prefers-color-scheme: dark) {{ :root {{ {_variables(DARK)} }} }}
@media print {{ :root {{ color-scheme: light; {_variables(LIGHT)} }} }}
* {{ box-sizing: border-box; }}
body {{ font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--back);
  margin: 0; }}
main {{ max-width: 980px; margin: 0 auto; padding: 1.5em 1em 3em; }}
h1 {{ font-size: 1.4em; line-height: 1.3; margin: 0.3em 0; overflow-wrap: anywhere; }}
h2 {{ font-size: 1.15em; margin: 2em 0 0.4em; }}
h3 {{ font-size: 1em; margin: 1.2em 0 0.3em; overflow-wrap: anywhere; }}
p {{ margin: 0.3em 0 0.8em; }} p, li, dd {{ max-width: 48em; overflow-wrap: anywhere; }}
ul {{ margin: 0.3em 0; padding-left: 1.3em; }}
.soft, figcaption {{ color: var(--soft); }}
.verdict {{ display: inline-block; margin: 0; padding: 0.1em 0.7em; border: 2px solid;
  border-radius: 1em; font-weight: 700; }}
.equal, .rounding {{ color: var(--good); }} .different {{ color: var(--bad); }}
.undetermined {{ color: var(--open); }}
.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 0.92em;
  margin: 0.5em 0; }}
th, td {{ text-align: left; padding: 0.25em 1.1em 0.25em 0; border-bottom: 1px solid var(--rule);
  vertical-align: top; }}
thead th {{ font-weight: 600; color: var(--soft); }} tbody th {{ font-weight: 400; }}
td {{ white-space: nowrap; }} .figure {{ text-align: right; white-space: nowrap; }}
tbody th, td.name {{ white-space: normal; overflow-wrap: anywhere; min-width: 12em; }}
tr.equal, tr.rounding {{ color: inherit; }} tr.different th {{ font-weight: 600; }}
tr.here {{ background: var(--tint); }} tr.here th {{ font-weight: 700; color: var(--bad); }}
tr.here th::before {{ content: "differs here: "; }}
figure {{ margin: 0.5em 0 1em; }}
svg {{ display: block; width: 100%; min-width: 620px; height: auto; }}
svg text {{ fill: var(--soft); font: 12px system-ui, sans-serif; }}
svg text.value {{ fill: var(--text); }} svg text.strong {{ fill: var(--bad); font-weight: 700; }}
.grid {{ stroke: var(--rule); }} .beyond {{ fill: var(--tint); }}
.limit {{ stroke: var(--bad); stroke-width: 1.5; stroke-dasharray: 6 4; }}
.first-difference {{ stroke: var(--bad); stroke-dasharray: 2 3; }}
.bar {{ fill: var(--bar); }} .spread {{ stroke: var(--text); stroke-width: 2; }}
.first {{ stroke: var(--mark1); stroke-width: 3; }}
.unmeasured {{ fill: none; stroke: var(--soft); }}
{_MARKS}
.legend {{ list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: 0.2em 1.6em; }}
.legend li {{ display: flex; align-items: center; gap: 0.5em; }}
svg.key {{ width: 14px; min-width: 14px; flex: none; }}
details {{ margin: 0.6em 0; }}
summary {{ cursor: pointer; overflow-wrap: anywhere; }}
summary span:first-child {{ font-weight: 600; }}
summary:focus-visible {{ outline: 2px solid var(--bar); outline-offset: 2px; }}
dl {{ display: grid; grid-template-columns: max-content 1fr; gap: 0.2em 1.2em; margin: 0.4em 0; }}
dt {{ color: var(--soft); }} dd {{ margin: 0; }}
@media print {{ main {{ max-width: none; padding: 0; }} .wide {{ overflow: visible; }}
  figure, tr, h2, h3 {{ break-inside: avoid; }} h2, h3, p {{ break-after: avoid; }}
  svg {{ min-width: 0; }} th, td {{ padding-right: 0.6em; }} }}
"""
