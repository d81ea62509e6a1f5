"""The leaderboard's site in a browser: sort, filter, open a run, keys, and hostile text as text."""

import json

import pytest
from click.testing import CliRunner

from evaluators.cli import eval_command
from leaderboards.cli import leaderboard_command
from leaderboards.entry import read_entries
from leaderboards.reproduction_report import read_reproduction
from leaderboards.site import build_site, shipped_results
from npbench.building import build_split
from npbench.splits import Request
from npbench.storage import open_split
from npbench.suites import OfficialSplit

pytestmark = pytest.mark.browser

EVIL = '<script>window.hacked = 1</script><img src=x onerror="window.hacked = 1"> Evil-7B'
HOSTILE = (
    "</pre></script><script>window.hacked = 1</script>",
    '<img src="https://example.invalid/x.png" onerror="window.hacked = 1">',
)


def call(command, *arguments, **options):
    words = [str(argument) for argument in arguments]
    result = CliRunner().invoke(command, words, standalone_mode=False, **options)
    if result.exception is not None:
        raise result.exception


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """Two models and a solver on a tiny split, and their site."""
    folder = tmp_path_factory.mktemp("site")
    split = folder / "split"
    build_split(Request.make(suite="nano", split="test", seed=3, per_task=1), split)
    content = open_split(split).manifest["content_hash"]
    official = OfficialSplit("nano-test", "nano", ("nano",), "test", 3, 1, content)
    rows = list(open_split(split).rows(("id", "reference_solution")))
    for name, share in (("good", 12), ("evil", 4)):
        lines = [
            {
                "id": row["id"],
                "sample": sample,
                "reply": f"Answer: {row['reference_solution']}"
                if (place + sample) % 14 < share
                else HOSTILE[sample % 2],
            }
            for place, row in enumerate(rows)
            for sample in range(3)
        ]
        script = folder / f"{name}.jsonl"
        script.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    common = ("--data", split, "-k", 2, "--out")
    for name in ("good", "evil"):
        script = folder / f"{name}.jsonl"
        call(eval_command, "--backend", "scripted", "--model", script, *common, folder / name)
    call(eval_command, "--backend", "policy", "--model", "greedy", *common, folder / "greedy")
    officials = {official.name: official}
    for name, shown in (("good", "Good-3B"), ("evil", EVIL), ("greedy", "Greedy rule")):
        words = ("add", folder / name, "--to", folder / "entries", "--split", split)
        call(leaderboard_command, *words, "--name", shown, obj=officials)
    entries = read_entries(folder / "entries")
    build_site(
        folder / "out",
        entries,
        officials=officials,
        reproduction=read_reproduction(shipped_results()),
        tasks=("tsp", "knapsack"),
    )
    return folder / "out"


@pytest.fixture
def index(browser, site):
    browser.open(site / "index.html")
    return browser


def names(browser):
    return [element.text for element in browser.all(".ranking tbody th a")]


def choose(browser, name, value):
    browser.run(
        "const s = document.querySelector(`[name=${arguments[0]}]`); s.value = arguments[1];"
        "s.dispatchEvent(new Event('change', {bubbles: true}))",
        name,
        value,
    )


def clean(browser):
    """Whether the page said nothing, asked for nothing elsewhere, and ran no foreign code."""
    assert browser.messages() == []
    assert all(address.startswith(("file:", "data:")) for address in browser.requests())
    assert browser.run("return window.hacked === undefined")


def test_the_pages_are_quiet_and_ask_for_nothing(browser, site):
    for page in sorted(site.rglob("*.html")):
        browser.open(page)
        clean(browser)


def test_the_rankings_sort_by_a_click_and_by_a_key(index):
    from selenium.webdriver.common.keys import Keys

    assert names(index)[0] == "Greedy rule"
    assert [e.text for e in index.all(".ranking tbody td.rank")] == ["", "1", "2"]
    head = index.one("th[data-key=sr] button")
    head.click()
    assert index.one("th[data-key=sr]").get_attribute("aria-sort") == "descending"
    assert index.one("th[data-key=qr]").get_attribute("aria-sort") is None
    index.run("arguments[0].focus()", head)
    index.type(Keys.ENTER)
    assert index.one("th[data-key=sr]").get_attribute("aria-sort") == "ascending"
    assert names(index)[0] == EVIL
    index.one("th[data-key=name] button").click()
    assert names(index) == [EVIL, "Good-3B", "Greedy rule"]
    clean(index)


def test_filters_show_the_scores_of_a_part_and_stay_in_the_address(index, site):
    choose(index, "task", "tsp")
    assert index.one(".ranking .scope").text == "Travelling salesman"
    assert {e.text for e in index.all(".ranking tbody td.num:nth-last-child(2)")} == {"1"}
    assert "task=tsp" in index.run("return location.href")
    assert "3 runs" in index.one("#said").text
    choose(index, "group", "path")
    assert index.one(".ranking .scope").text == "path"
    assert {e.text for e in index.all(".ranking tbody td.num:nth-last-child(2)")} == {"2"}
    index.one("[name=solvers]").click()
    assert "Greedy rule" not in names(index)
    index.open(site / "index.html", fragment="#task=tsp&solvers=no")
    assert index.one(".ranking .scope").text == "Travelling salesman"
    assert len(names(index)) == 2
    choose(index, "modality", "image")
    assert len(names(index)) == 2
    index.one("button[type=reset]").click()
    assert len(names(index)) == 3
    clean(index)


def test_a_run_opens_and_its_samples_are_filtered(index):
    (link,) = (e for e in index.all(".ranking tbody th a") if e.text == "Good-3B")
    index.follow(link)
    assert index.one("h1").text == "Good-3B"
    everything = len(index.all(".question"))
    assert everything == 14
    index.one("#chips button[data-state=unparsed]").click()
    assert 0 < len(index.all(".question")) < everything
    assert f"of {everything} questions" in index.one("#said").text
    loaded = index.run(
        "const p = [...document.querySelectorAll('.question:not([hidden]) img')];"
        "p.forEach(i => i.loading = 'eager');"
        "return Promise.all(p.map(i => i.decode().then(() => i.naturalWidth > 50)))"
    )
    assert loaded
    assert all(loaded)
    clean(index)


def test_hostile_text_is_shown_as_text(index):
    (link,) = (e for e in index.all(".ranking tbody th a") if "Evil-7B" in e.text)
    assert link.text == EVIL
    index.follow(link)
    assert index.one("h1").text == EVIL
    shown = [e.text for e in index.all(".sample pre.reply")]
    assert set(HOSTILE) <= set(shown)
    assert not index.all(".sample img")
    clean(index)


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_no_page_is_wider_than_the_screen(browser, site, width, dark):
    for page in sorted(site.rglob("*.html")):
        browser.open(page, width=width, dark=dark)
        room = browser.run("return [document.documentElement.scrollWidth, window.innerWidth]")
        assert room[0] <= room[1] == width, page.name


def test_the_reproduction_shows_claims_plots_and_on_demand_every_measure(browser, site):
    from selenium.webdriver.common.keys import Keys

    study = read_reproduction(shipped_results())
    browser.open(site / "index.html")
    browser.follow(browser.one("nav a[href='reproduction.html']"))
    assert browser.one("h1").text == study.title
    said = [one.verdict for finding in study.findings for one in finding.said]
    assert [badge.text for badge in browser.all(".claims .badge")] == said
    pictures = [picture for part in study.sections for picture in part.pictures]
    browser.run("for (const i of document.images) i.loading = 'eager'")
    browser.wait("return [...document.images].every(i => i.complete && i.naturalWidth > 0)")
    assert [e.get_attribute("alt") for e in browser.all(".plot img")] == [p.alt for p in pictures]
    tables = len(browser.all("table"))
    summary = browser.all("summary")[0]
    browser.run("arguments[0].focus()", summary)
    browser.type(Keys.ENTER)
    assert len(browser.all("table")) == tables + len(study.sections[0].sheets)
    clean(browser)


def test_every_control_is_reached_by_the_keyboard(index):
    from selenium.webdriver.common.keys import Keys

    reached = []
    for _ in range(40):
        index.type(Keys.TAB)
        reached.append(
            index.run(
                "const e = document.activeElement;"
                "return e.name || e.closest('[data-key]')?.dataset.key || e.className || e.tagName"
            )
        )
    for name in ("skip", "suite", "modality", "group", "task", "solvers", "qr", "sr", "scroll"):
        assert name in reached, name
