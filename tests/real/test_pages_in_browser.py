"""Pages in Chromium: nothing fails, overflows or leaks out; buttons, keys and screen readers work.

WHYGPU_SCREENSHOTS names a folder that keeps a picture of every page: wide, dark and narrow.
"""

from __future__ import annotations

import base64
import functools
import json
import os
import pathlib
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from typing import Any

import pytest

from tests import page_samples
from whygpu.model.batch import BatchResult
from whygpu.model.code_finding import LintReport
from whygpu.model.comparison import ComparisonReport
from whygpu.model.estimate import MemoryEstimate
from whygpu.model.explanation import Explanation
from whygpu.model.fix import FixAnswer
from whygpu.model.holders import HoldersReport
from whygpu.model.install_plan import PlanAnswer
from whygpu.model.policy import RunReport
from whygpu.model.report import Report
from whygpu.render.html import answers

webdriver = pytest.importorskip(
    "selenium.webdriver", reason="no selenium: pip install -e '.[pages]'"
)
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None, reason="no Chromium with its driver on PATH"
)

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
AXE = "4.10.3"
WIDE, NARROW = 1600, 420
EVIL = '"\'><img src=x onerror="window.hacked=1"><script>window.hacked=1</script>&lt;b&gt;'
THOROUGH = ("check-broken", "compare")
"""Pages that axe-core judges in every view, which takes seconds. The others have the same parts."""
KINDS = (
    *(BatchResult, ComparisonReport, Explanation, FixAnswer, HoldersReport, LintReport),
    *(MemoryEstimate, PlanAnswer, Report, RunReport),
)


@pytest.fixture(scope="session", autouse=True)
def machine_abilities() -> None:
    """No framework runs here."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(executable_path=DRIVER)
    driver = webdriver.Chrome(options=options, service=service)
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pathlib.Path]:
    """A file for every kind of answer."""
    folder = tmp_path_factory.mktemp("pages")
    made = {}
    for name, answer in page_samples.realistic(folder).items():
        made[name] = folder / f"{name}.html"
        made[name].write_text(answers.page(answer, "1.0"), encoding="utf-8")
    return made


@functools.cache
def axe() -> str | None:
    """The source of axe-core, from the cache or from npm; None if there is neither."""
    cached = ROOT / ".cache" / f"axe-core-{AXE}.js"
    if cached.exists():
        return cached.read_text(encoding="utf-8")
    if shutil.which("npm") is None:
        return None
    cached.parent.mkdir(exist_ok=True)
    packed = subprocess.run(
        ["npm", "pack", "--silent", f"axe-core@{AXE}"],
        cwd=cached.parent,
        capture_output=True,
        text=True,
        timeout=60,
    )
    if packed.returncode:
        return None
    archive = cached.parent / packed.stdout.split()[-1]
    with tarfile.open(archive) as packages:
        source = packages.extractfile("package/axe.min.js")
        assert source is not None
        cached.write_bytes(source.read())
    archive.unlink()
    return cached.read_text(encoding="utf-8")


def opened(browser: Any, path: pathlib.Path, width: int, *, dark: bool = False) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    browser.get(path.as_uri())


def complaints(browser: Any) -> list[str]:
    return [entry["message"] for entry in browser.get_log("browser") if entry["level"] != "INFO"]


def keep_picture(browser: Any, name: str) -> None:
    folder = os.environ.get("WHYGPU_SCREENSHOTS")
    if folder:
        picture = browser.execute_cdp_cmd(
            "Page.captureScreenshot", {"captureBeyondViewport": True, "format": "png"}
        )
        path = pathlib.Path(folder) / f"{name}.png"
        path.write_bytes(base64.b64decode(picture["data"]))


def test_every_page_loads_fits_and_is_accessible(
    browser: Any, pages: dict[str, pathlib.Path]
) -> None:
    views = {"wide": (WIDE, False), "dark": (WIDE, True), "narrow": (NARROW, False)}
    for name, path in pages.items():
        for view, (width, dark) in views.items():
            opened(browser, path, width, dark=dark)
            where = f"{name}, {view}"
            assert complaints(browser) == [], where
            reach = browser.execute_script("return document.documentElement.scrollWidth")
            assert reach <= width, f"{where}: {reach} pixels wide"
            keep_picture(browser, f"{name}-{view}")
            source = axe()
            if source is not None and (view == "dark" or name in THOROUGH):
                assert violations(browser, source) == [], where
    if axe() is None:
        pytest.skip("axe-core is not to be had: no npm, or no network")


def violations(browser: Any, source: str) -> list[str]:
    # Everything folded is part of the page, too.
    browser.execute_script("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    browser.execute_script(source)
    found = browser.execute_async_script(
        "const done = arguments[0]; axe.run().then(r => done(JSON.stringify(r.violations)));"
    )
    return [
        f"{each['id']}: {each['nodes'][0]['html'][:120]} {each['nodes'][0]['failureSummary']}"
        for each in json.loads(found)
    ]


def test_a_button_copies_its_command(browser: Any, pages: dict[str, pathlib.Path]) -> None:
    allowed = {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
    browser.execute_cdp_cmd("Browser.grantPermissions", allowed)
    opened(browser, pages["check-broken"], WIDE)
    button = browser.find_element("css selector", ".command button")
    assert button.accessible_name == "Copy the command whygpu run -- python PROGRAM.py"
    button.click()
    copied = browser.execute_async_script(
        "const done = arguments[0]; navigator.clipboard.readText().then(done, e => done(`${e}`));"
    )
    assert copied == "whygpu run -- python PROGRAM.py"
    assert button.text == "Copied"
    assert browser.find_element("css selector", "[role=status]").get_attribute("textContent")


def test_without_a_clipboard_the_command_is_selected(
    browser: Any, pages: dict[str, pathlib.Path]
) -> None:
    opened(browser, pages["check-broken"], WIDE)
    browser.execute_script("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    button = browser.find_element("css selector", ".command button")
    button.click()
    assert button.text in ("Copied", "Selected")
    selected = browser.execute_script("return window.getSelection().toString()")
    assert selected == "whygpu run -- python PROGRAM.py"


def test_keys_reach_and_unfold_the_evidence(browser: Any, pages: dict[str, pathlib.Path]) -> None:
    from selenium.webdriver.common.keys import Keys

    opened(browser, pages["check-broken"], WIDE)
    for _ in range(60):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        focused = browser.switch_to.active_element
        if focused.tag_name == "summary":
            break
    assert focused.text.startswith("Evidence")
    focused.send_keys(Keys.ENTER)
    assert browser.find_element("css selector", ".finding details").get_attribute("open")


def test_everything_is_unfolded_on_paper(browser: Any, pages: dict[str, pathlib.Path]) -> None:
    opened(browser, pages["check-broken"], WIDE)
    folded = "return document.querySelectorAll('details:not([open])').length"
    before = browser.execute_script(folded)
    assert before > 0
    browser.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    assert browser.execute_script(folded) == 0
    browser.execute_script("window.dispatchEvent(new Event('afterprint'))")
    assert browser.execute_script(folded) == before
    paper = browser.execute_cdp_cmd("Page.printToPDF", {})
    assert len(paper["data"]) > 10_000


def test_hostile_names_stay_text(browser: Any, tmp_path: pathlib.Path) -> None:
    for kind in KINDS:
        path = tmp_path / "page.html"
        path.write_text(answers.page(page_samples.hostile(kind, EVIL), "1.0"), encoding="utf-8")
        opened(browser, path, NARROW)
        state = browser.execute_script(
            "return [window.hacked, document.images.length, document.scripts.length]"
        )
        assert state == [None, 0, 1], kind.__name__
        assert complaints(browser) == [], kind.__name__
        assert EVIL in browser.execute_script("return document.body.textContent"), kind.__name__
        reach = browser.execute_script("return document.documentElement.scrollWidth")
        assert reach <= NARROW, f"{kind.__name__}: {reach} pixels wide"
