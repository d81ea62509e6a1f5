"""The page of a run in a browser: filters, search, links, keys, and hostile replies."""

import json
import re

import pytest
from click.testing import CliRunner

from evaluators.cli import eval_command
from evaluators.reports.command import report_command
from npbench.building import build_split
from npbench.splits import Request
from npbench.storage import open_split

pytestmark = pytest.mark.browser

HOSTILE = (
    "<script>window.hacked = 1</script>",
    "</script><script>window.hacked = 1</script><!--",
    '<img src="https://example.invalid/x.png" onerror="window.hacked = 1">',
    "turned \u202egnihton\u202c, hidden \u200b, bell \x07, line \u2028 end",
    "needle " + "x" * 5000 + " haystack",
)


def call(command, *arguments):
    words = [str(argument) for argument in arguments]
    result = CliRunner().invoke(command, words, standalone_mode=False)
    if result.exception is not None:
        raise result.exception


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """A run of a solver, a run of hostile replies, and their pages."""
    folder = tmp_path_factory.mktemp("report")
    split = folder / "split"
    tasks = ("tsp", "graph_coloring", "knapsack")
    build_split(
        Request.make(suite="nano", split="test", seed=3, per_task=2, tasks=tasks, modality="both"),
        split,
    )
    ids = [row["id"] for row in open_split(split).rows(("id",))]
    lines = [
        {"id": name, "sample": sample, "reply": HOSTILE[(place + sample) % len(HOSTILE)]}
        for place, name in enumerate(ids)
        for sample in range(2)
    ]
    script = folder / "hostile.jsonl"
    script.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    common = ("--data", split, "-k", 2, "--out")
    call(eval_command, "--backend", "policy", "--model", "greedy", *common, folder / "solver")
    call(eval_command, "--backend", "scripted", "--model", script, *common, folder / "hostile")
    call(report_command, folder / "hostile", "--out", folder / "hostile.html")
    call(report_command, folder / "solver", folder / "hostile", "--out", folder / "both.html")
    return folder


@pytest.fixture
def hostile(browser, made):
    browser.open(made / "hostile.html")
    return browser


@pytest.fixture
def both(browser, made):
    browser.open(made / "both.html")
    return browser


def choose(browser, name, value):
    from selenium.webdriver.support.select import Select

    Select(browser.one(f'select[data-filter="{name}"]')).select_by_value(value)


def ids(browser):
    return [element.text for element in browser.all(".question .name")]


@pytest.mark.parametrize("page", ["hostile.html", "both.html"])
@pytest.mark.parametrize("dark", [False, True])
def test_the_page_asks_no_network_and_says_nothing_to_the_console(browser, made, page, dark):
    browser.open(made / page, dark=dark)
    for question in browser.all(".question summary"):
        question.click()
    assert {address.split(":")[0] for address in browser.requests()} <= {"file", "data"}
    assert browser.messages() == []


def test_hostile_replies_are_text(hostile):
    for question in hostile.all(".question summary"):
        question.click()
    for button in hostile.all(".reply button"):
        button.click()
    shown = "\n".join(element.text for element in hostile.all(".reply pre"))
    for reply in HOSTILE[:3]:
        assert reply in shown
    assert "turned U+202Egnihton" in shown
    assert {"U+202E", "U+202C", "U+200B", "U+0007", "U+2028"} <= {
        element.text for element in hostile.all(".reply .unseen")
    }
    assert hostile.run("return window.hacked") is None
    assert hostile.all(".reply img, .reply script") == []
    assert hostile.messages() == []
    assert all(not address.startswith("http") for address in hostile.requests())


def test_a_long_reply_is_bounded_until_all_of_it_is_asked_for(hostile):
    hostile.one("#search").send_keys("haystack")
    hostile.first(".question summary").click()
    button = hostile.first(".reply button")
    assert button.text == f"Show all {len(HOSTILE[-1])} characters"
    reply = button.find_element("xpath", "./preceding-sibling::pre")
    assert len(reply.text) < 1600
    assert f"{len(HOSTILE[-1]) - 1400} characters" in reply.text
    button.click()
    assert reply.text == HOSTILE[-1]


def test_filters_narrow_and_clear(both):
    assert len(ids(both)) == 12
    choose(both, "task", "tsp")
    assert len(ids(both)) == 4
    choose(both, "modality", "image")
    assert len(ids(both)) == 2
    assert all("tsp" in name and name.endswith("image") for name in ids(both))
    assert both.one("#shown").text == "2 of 12 questions match."
    both.one("form button[type=reset]").click()
    assert len(ids(both)) == 12
    choose(both, "verdict", "state:unparsed")
    assert len(ids(both)) == 12
    choose(both, "runs", "agree")
    assert ids(both) == []


def test_search_finds_words_of_replies_and_marks_them(both):
    both.one("#search").send_keys("NEEDLE")
    found = ids(both)
    assert 0 < len(found) < 12
    both.first(".question summary").click()
    assert both.first(".reply.match")
    marked = both.all(".reply.match")
    assert all("hostile.jsonl" in element.text for element in marked)
    both.one("#search").clear()
    both.one("#search").send_keys("no reply says this")
    assert ids(both) == []


def test_a_question_shows_picture_prompt_verdict_and_stage(both):
    both.one("#search").send_keys("tsp-nano-test-s3-00000-image")
    both.one(".question summary").click()
    picture = both.one(".question img")
    assert picture.get_attribute("src").startswith("data:image/png;base64,")
    assert both.run("return arguments[0].naturalWidth", picture) > 100
    body = both.one(".question .body").text
    assert "Prompt" in body
    assert "proven optimum" in body
    assert "decided by parser, verifier" in body
    assert "Answer read: [" in body
    assert len(both.all(".reply")) == 6


def test_a_link_opens_its_sample_and_a_filter_does_not_hide_it(both, made):
    both.all(".question summary")[3].click()
    both.first(".reply .head a")
    link = both.all(".reply .head a")[4].get_attribute("href")
    fragment = link[link.index("#") :]
    assert re.fullmatch(r"#sample-[\w-]+\.run2\.sample0", fragment)
    both.open(made / "both.html", fragment=fragment)
    target = both.one(fragment.replace(".", r"\."))
    assert both.run("return document.activeElement === arguments[0]", target)
    assert both.run("return arguments[0].getBoundingClientRect().top", target) < 900
    choose(both, "task", "knapsack")
    assert not both.all(fragment.split(".")[0])
    both.run("location.hash = arguments[0]", fragment.split(".")[0] + ".greedy")
    assert both.one(fragment.split(".")[0])
    both.open(made / "both.html", fragment="#sample-absent")
    assert both.one("#shown").text == "The sample of this link is not on this page."


def test_everything_is_reached_by_keys(both):
    from selenium.webdriver.common.keys import Keys

    both.type("/")
    assert both.run("return document.activeElement.id") == "search"
    both.type("knapsack-nano-test-s3-00001-image")
    assert len(ids(both)) == 1
    for _ in range(30):
        both.type(Keys.TAB)
        if both.run("return document.activeElement.tagName") == "SUMMARY":
            break
    both.type(Keys.ENTER)
    assert both.one(".question .body")
    both.type(Keys.TAB)
    assert both.run("return document.activeElement.closest('.reply') !== null")


@pytest.mark.parametrize("page", ["hostile.html", "both.html"])
def test_a_telephone_scrolls_in_one_direction(browser, made, page):
    browser.open(made / page, width=390)
    for question in browser.all(".question summary"):
        browser.run("arguments[0].click()", question)
    assert browser.run("return document.documentElement.scrollWidth") == 390
    assert browser.run("return document.body.scrollWidth") == 390


def test_dark_and_light_have_readable_text(browser, made):
    for dark in (False, True):
        browser.open(made / "both.html", dark=dark)
        ink, paper = browser.run(
            "const s = getComputedStyle(document.body); return [s.color, s.backgroundColor]"
        )
        light, low = sorted((luminance(ink), luminance(paper)), reverse=True)
        assert (light + 0.05) / (low + 0.05) > 7
        assert (luminance(ink) > luminance(paper)) is dark


def luminance(colour):
    channels = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
