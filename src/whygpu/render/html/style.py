"""How pages and notebook outputs look: on a screen, light or dark, wide or narrow, and on paper."""

from __future__ import annotations

from whygpu.render.html.svg import COLORS

LIGHT = {
    "text": "#1c1f23", "back": "#ffffff", "soft": "#59636e", "rule": "#d7dce1", "box": "#f5f7f9",
    "good": "#1a7f37", "bad": "#c21c28", "open": "#8a5a00", "tint": "#fdecec", "bar": "#3b76ad",
    "warm": "#fff6df", "rest": "#e3e8ed", "marked": "#ffe2a8",
    "mark0": "#0b62a4", "mark1": "#b54708", "mark2": "#157347", "mark3": "#7e3fb0",
    "mark4": "#806600", "mark5": "#0c7784", "mark6": "#b4236b", "mark7": "#565f69",
}  # fmt: skip
DARK = {
    "text": "#e6e9ec", "back": "#16191d", "soft": "#a3adb7", "rule": "#363d45", "box": "#1f242a",
    "good": "#56c878", "bad": "#ff8079", "open": "#dcb13c", "tint": "#33201f", "bar": "#6ba3dc",
    "warm": "#302818", "rest": "#2f363e", "marked": "#5c4613",
    "mark0": "#6bb3f0", "mark1": "#f0a35c", "mark2": "#5fd39a", "mark3": "#c99af0",
    "mark4": "#d9c04a", "mark5": "#5fd0d8", "mark6": "#f08ab8", "mark7": "#b8c0c8",
}  # fmt: skip

ROOT = "whygpu"
"""The class around everything. Every rule is about what is in it, because a notebook is shared."""


def _variables(colors: dict[str, str]) -> str:
    return " ".join(f"--{name}: {color};" for name, color in colors.items())


_MARKS = "\n".join(
    f"& .mark{number} {{ fill: var(--mark{number}); }} "
    f"& .curve{number} {{ stroke: var(--mark{number}); }}"
    for number in range(COLORS)
)

# "&" stands for the class around everything.
_RULES = f"""
& {{ {_variables(LIGHT)} color-scheme: light; font: 15px/1.5 system-ui, sans-serif;
  color: var(--text); background: var(--back); }}
& * {{ box-sizing: border-box; }}
& h1, & h2, & h3 {{ font-weight: 700; overflow-wrap: anywhere; color: inherit; }}
& h1 {{ font-size: 1.5em; line-height: 1.3; margin: 0; }}
& h2 {{ font-size: 1.2em; margin: 2em 0 0.5em; }}
& h3 {{ font-size: 1em; margin: 1.2em 0 0.3em; }}
& p {{ margin: 0.3em 0 0.8em; }}
& p, & li, & dd {{ max-width: 52em; overflow-wrap: anywhere; }}
& ul, & ol {{ margin: 0.3em 0; padding-left: 1.3em; }}
& code, & pre {{ font-family: ui-monospace, "DejaVu Sans Mono", Consolas, monospace;
  font-size: 0.92em; }}
& .soft, & figcaption {{ color: var(--soft); }}
& .good {{ color: var(--good); }} & .bad {{ color: var(--bad); }} & .open {{ color: var(--open); }}
& .verdict {{ display: flex; gap: 0.8em; align-items: flex-start; }}
& .verdict > .mark {{ flex: none; width: 1.8em; height: 1.8em; line-height: 1.8em;
  font-size: 1.15em; font-weight: 700; text-align: center; border-radius: 50%;
  border: 2px solid; }}
& .verdict p {{ margin: 0.1em 0 0; max-width: none; }}
& .mark.fine, & .mark.works {{ color: var(--good); }}
& .mark.wrong {{ color: var(--bad); }}
& .mark.attention, & .mark.unknown {{ color: var(--open); }}
& .verdict > .mark.unknown {{ border-style: dashed; }}
& .badge {{ display: inline-block; padding: 0 0.6em; border: 1px solid; border-radius: 1em;
  font-size: 0.85em; font-weight: 600; white-space: nowrap; color: var(--soft); }}
& .badge.error, & .badge.wrong, & .badge.different, & .badge.cpu, & .badge.broken
  {{ color: var(--bad); }}
& .badge.warning, & .badge.attention, & .badge.unknown, & .badge.undetermined
  {{ color: var(--open); }}
& .badge.gpu, & .badge.fine, & .badge.works {{ color: var(--good); }}
& .badge.unknown {{ border-style: dashed; }}
& ol.stack {{ list-style: none; margin: 1.4em 0 0; padding: 0; display: grid; gap: 4px; }}
& ol.stack > li {{ max-width: none; display: grid; gap: 0 1.2em;
  grid-template-columns: minmax(0, 5fr) minmax(0, 6fr); }}
& .layer {{ border: 1px solid var(--rule); border-left: 5px solid var(--rule);
  background: var(--box); border-radius: 4px; padding: 0.35em 0.8em 0.45em; }}
& .layer p {{ margin: 0; font-size: 0.9em; color: var(--soft); overflow-wrap: anywhere; }}
& .layer .line {{ display: flex; gap: 0.2em 0.6em; flex-wrap: wrap; align-items: baseline; }}
& .layer .line b {{ overflow-wrap: anywhere; }}
& .layer .state {{ font-size: 0.85em; color: var(--soft); margin-left: auto; }}
& .layer .mark {{ font-weight: 700; width: 1em; text-align: center; }}
& .layer.works {{ border-left-color: var(--good); }}
& .layer.wrong {{ border-color: var(--bad); background: var(--tint); }}
& .layer.wrong .state {{ color: var(--bad); font-weight: 700; }}
& .layer.attention {{ border-color: var(--open); background: var(--warm); }}
& .layer.attention .state, & .layer.unknown .state {{ color: var(--open); font-weight: 600; }}
& .layer.unknown {{ border: 1px dashed var(--open); border-left: 5px dashed var(--open); }}
& .layer.not-asked, & .layer.absent {{ border-style: dotted; background: none; }}
& .layer.on-cpu {{ border-left-color: var(--mark7); }}
& .layer.follows {{ border-left-color: var(--bad); }}
& .beside {{ align-self: center; font-size: 0.93em; }}
& .beside p {{ margin: 0.2em 0; }}
& .finding {{ border: 1px solid var(--rule); border-left: 5px solid var(--rule);
  border-radius: 4px; padding: 0.2em 1em 0.8em; margin: 0 0 1em; }}
& .finding.error {{ border-left-color: var(--bad); }}
& .finding.warning {{ border-left-color: var(--open); }}
& .finding h3 {{ margin: 0.6em 0 0.3em; display: flex; flex-wrap: wrap; gap: 0.2em 0.6em;
  align-items: baseline; }}
& .finding h3 .badge {{ white-space: normal; overflow-wrap: anywhere; min-width: 0; }}
& .finding h3 code {{ color: var(--soft); font-weight: 400; }}
& .steps > li {{ max-width: none; }}
& ul.remedies {{ list-style: none; padding: 0; }}
& .remedies > li {{ max-width: none; margin: 0.6em 0; }}
& .remedies > li::before {{ content: "Fix: "; font-weight: 600; }}
& .remedies.next > li::before {{ content: "Next: "; }}
& .remedies.plain > li::before {{ content: ""; }}
& .command {{ display: flex; align-items: stretch; margin: 0.35em 0; border-radius: 4px;
  border: 1px solid var(--rule); background: var(--box); overflow: hidden; }}
& .command pre {{ flex: 1; min-width: 0; margin: 0; padding: 0.5em 0.8em; overflow-x: auto;
  background: none; color: inherit; white-space: pre; }}
& .command code, & .lines code {{ background: none; color: inherit; padding: 0; border: 0; }}
& .command button {{ flex: none; font: inherit; font-size: 0.85em; padding: 0 0.9em;
  cursor: pointer; border: 0; border-left: 1px solid var(--rule); background: var(--back);
  color: var(--text); }}
& .command button:hover {{ background: var(--rest); }}
& .lines {{ border: 1px solid var(--rule); border-radius: 4px; background: var(--box);
  margin: 0.35em 0; }}
& .lines pre {{ margin: 0; padding: 0.5em 0.8em; overflow-x: auto; max-height: 28em;
  background: none; color: inherit; }}
& :focus-visible {{ outline: 2px solid var(--bar); outline-offset: 2px; }}
& mark {{ background: var(--marked); color: inherit; border-radius: 2px; }}
& .gutter {{ color: var(--soft); }}
& .wide {{ overflow-x: auto; }}
& table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 0.92em;
  margin: 0.5em 0; min-width: min(100%, 30em); }}
& th, & td {{ text-align: left; padding: 0.3em 1.1em 0.3em 0;
  border: 0; border-bottom: 1px solid var(--rule); vertical-align: top; background: none; }}
& tbody tr:nth-child(n) {{ background: none; }}
& thead th {{ font-weight: 600; color: var(--soft); }} & tbody th {{ font-weight: 400; }}
& td {{ white-space: nowrap; }}
& thead .figure, & td.figure {{ text-align: right; white-space: nowrap; }}
& tbody th, & td.name {{ white-space: normal; overflow-wrap: anywhere; min-width: 10em; }}
& td.name {{ min-width: 14em; }}
& tr.different th {{ font-weight: 600; }} & tr.chosen {{ font-weight: 600; }}
& tbody tr.here:nth-child(n) {{ background: var(--tint); }}
& tr.here th {{ font-weight: 700; color: var(--bad); }}
& tr.here th::before {{ content: "differs here: "; }}
& h3.equal, & h3.rounding, & summary .equal, & summary .rounding {{ color: var(--good); }}
& h3.different, & summary .different {{ color: var(--bad); }}
& h3.undetermined, & summary .undetermined {{ color: var(--open); }}
& figure {{ margin: 0.5em 0 1em; }}
& svg {{ display: block; width: 100%; min-width: 760px; height: auto; }}
& svg text {{ fill: var(--soft); font: 12px system-ui, sans-serif; }}
& svg text.value {{ fill: var(--text); }}
& svg text.strong {{ fill: var(--bad); font-weight: 700; }}
& .grid {{ stroke: var(--rule); }} & .beyond {{ fill: var(--tint); }}
& .limit {{ stroke: var(--bad); stroke-width: 1.5; stroke-dasharray: 6 4; }}
& .first-difference {{ stroke: var(--bad); stroke-dasharray: 2 3; }}
& .bar {{ fill: var(--bar); }} & .bar-rest {{ fill: var(--rest); }}
& .bar-gpu {{ fill: var(--mark2); }} & .bar-cpu {{ fill: var(--mark1); }}
& .bar-other {{ fill: var(--mark7); }}
& .spread {{ stroke: var(--text); stroke-width: 2; }}
& .first {{ stroke: var(--mark1); stroke-width: 3; }}
& .unmeasured {{ fill: none; stroke: var(--soft); }}
& .curve {{ fill: none; stroke-width: 2; }} & .band {{ fill: var(--bar); opacity: 0.25; }}
{_MARKS}
& ul.legend {{ list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: 0.2em 1.6em; }}
& .legend li {{ display: flex; align-items: center; gap: 0.5em; }}
& svg.key {{ width: 14px; min-width: 14px; flex: none; }}
& svg.share {{ min-width: 5em; width: 100%; height: 0.8em; border-radius: 3px; margin: 0.35em 0; }}
& details {{ margin: 0.6em 0; }}
& summary {{ cursor: pointer; overflow-wrap: anywhere; }}
& .inside {{ padding: 0.2em 0 0.2em 1.1em; }}
& dl {{ margin: 0.4em 0; }}
& dl > div {{ display: grid; grid-template-columns: 9em minmax(0, 1fr); gap: 0 1.2em;
  padding: 0.15em 0; }}
& dt {{ color: var(--soft); font-weight: 400; float: none; width: auto; }}
& dt, & dd {{ margin: 0; overflow-wrap: anywhere; }}
& .sheet {{ border-top: 3px solid var(--rule); margin-top: 3em; padding-top: 1.5em; }}
& .sheet h2 {{ margin: 0; }}
& .hidden {{ position: absolute; width: 1px; height: 1px; overflow: hidden;
  clip-path: inset(50%); }}
@media (max-width: 700px) {{
  & ol.stack > li {{ grid-template-columns: minmax(0, 1fr); }}
  & .beside {{ padding: 0.2em 0 0.6em 0.9em; }}
  & dl > div {{ grid-template-columns: minmax(0, 1fr); padding: 0.3em 0; }}
}}
"""

_DARK_RULE = f"{{ {_variables(DARK)} color-scheme: dark; }}"

_PAGE = f"""
@media (prefers-color-scheme: dark) {{ & {_DARK_RULE} }}
@media print {{ & {{ {_variables(LIGHT)} color-scheme: light; }} }}
body {{ margin: 0; }}
& main {{ max-width: 1080px; margin: 0 auto; padding: 22px 15px 30px; }}
& footer {{ max-width: 1080px; margin: 0 auto; padding: 0 15px 30px; color: var(--soft);
  font-size: 0.88em; }}
@media print {{ & main {{ max-width: none; padding: 0; }} & .wide {{ overflow: visible; }}
  & .command button {{ display: none; }} & .command pre {{ white-space: pre-wrap; }}
  & .lines pre {{ white-space: pre-wrap; max-height: none; }}
  & figure, & tr, & .finding, & .stack > li {{ break-inside: avoid; }}
  & h2, & h3 {{ break-after: avoid; }}
  & svg {{ min-width: 0; }} & td {{ white-space: normal; }}
  & th, & td {{ padding-right: 0.6em; }} }}
"""

# A notebook has its own theme, whatever the system's is: JupyterLab, Colab and VS Code say so.
_NOTEBOOK = f"""
& {{ border: 1px solid var(--rule); border-radius: 6px; padding: 0.9em 1.1em; max-width: 1080px;
  overflow-x: auto; }}
& h1 {{ font-size: 1.2em; }} & h2 {{ font-size: 1.05em; margin: 1.4em 0 0.4em; }}
& .command pre {{ user-select: all; }}
[data-jp-theme-light="false"] &, [theme="dark"] &, .vscode-dark & {_DARK_RULE}
"""


def page_style() -> str:
    return (_RULES + _PAGE).replace("&", f".{ROOT}")


def notebook_style() -> str:
    return (_RULES + _NOTEBOOK).replace("&", f".{ROOT}")
