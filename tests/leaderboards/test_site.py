"""The site: every page whole, foreign text as text, the same bytes, nothing from a network."""

import re
from html.parser import HTMLParser
from importlib.resources import files

import pytest

from leaderboards.entry import read_entries
from leaderboards.formats import Sheet
from leaderboards.reproduction import Finding, Picture, Reproduction, Said, Section
from leaderboards.site import build_site, shipped_entries
from npbench.errors import InputError

EVIL = '<script>document.title="pwned"</script> Evil-7B'
TASKS = ("tsp", "knapsack")
CSS = files("leaderboards").joinpath("templates", "assets", "site.css").read_text(encoding="utf-8")


class Page(HTMLParser):
    """Tags with their attributes, and what a reader sees."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text, self.ids = [], "", []
        self._hidden = 0
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.ids += [value for name, value in attributes if name == "id"]
        self._hidden += tag in ("script", "style", "title")

    def handle_endtag(self, tag):
        self._hidden -= tag in ("script", "style", "title")

    def handle_data(self, data):
        if not self._hidden:
            self.text += data

    def links(self):
        return [
            attributes[name]
            for _, attributes in self.tags
            for name in ("href", "src")
            if name in attributes
        ]


@pytest.fixture(scope="module")
def entries(tmp_path_factory, officials, model_run, solver_run, split):
    from click.testing import CliRunner

    from leaderboards.cli import leaderboard_command

    folder = tmp_path_factory.mktemp("entries")
    for run, name in ((model_run, EVIL), (solver_run, "Greedy rule")):
        words = ["add", run, "--to", folder, "--split", split, "--name", name]
        result = CliRunner().invoke(
            leaderboard_command, [str(word) for word in words], obj=officials
        )
        assert result.exit_code == 0, result.output
    return read_entries(folder)


@pytest.fixture(scope="module")
def site(tmp_path_factory, entries, officials):
    out = tmp_path_factory.mktemp("site")
    build_site(out, entries, officials=officials, tasks=TASKS)
    return out


@pytest.fixture(scope="module")
def pages(site):
    return {
        str(path.relative_to(site)): Page(path.read_text(encoding="utf-8"))
        for path in site.rglob("*.html")
    }


def test_the_pages_are_there(pages, entries):
    runs = {f"runs/{entry.id}.html" for entry in entries}
    assert set(pages) == {"index.html", "published.html", "gallery.html", *runs}


def test_every_link_inside_the_site_leads_somewhere(pages, site):
    for name, page in pages.items():
        for link in page.links():
            if link.startswith(("https://", "data:,")):
                continue
            path, _, anchor = link.partition("#")
            if path:
                assert (site / name).parent.joinpath(path).resolve().is_file(), (name, link)
            if anchor and not path:
                assert anchor in page.ids, (name, link)


def test_nothing_is_loaded_from_a_network(pages, site):
    for page in pages.values():
        for tag, attributes in page.tags:
            if tag in ("img", "script", "link", "iframe", "source"):
                address = attributes.get("src") or attributes.get("href") or ""
                assert "//" not in address
        policies = [a.get("content", "") for t, a in page.tags if t == "meta"]
        assert any(text.startswith("default-src 'none'") for text in policies)
    for asset in (site / "assets").iterdir():
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", asset.read_text("utf-8"))


def test_foreign_text_is_text(pages, entries):
    for name, page in pages.items():
        scripts = [attributes for tag, attributes in page.tags if tag == "script"]
        assert all("src" in one or one.get("type") == "application/json" for one in scripts), name
        assert not any(key.startswith("on") for _, attributes in page.tags for key in attributes)
        assert not any("style" in attributes for _, attributes in page.tags)
    evil = next(entry for entry in entries if entry.name == EVIL)
    assert EVIL in pages["index.html"].text
    shown = pages[f"runs/{evil.id}.html"].text
    assert '<img src=x onerror="document.title=1">' in shown
    assert "{{ 7 * 7 }} {% raw %}" in shown


def test_ids_are_unique_and_pictures_have_words(pages):
    for name, page in pages.items():
        assert len(set(page.ids)) == len(page.ids), name
        assert sum(tag == "h1" for tag, _ in page.tags) == 1
        for tag, attributes in page.tags:
            if tag == "img":
                assert attributes["alt"]
                assert int(attributes["width"]) > 0


def test_published_numbers_and_our_runs_share_no_page(pages):
    assert "Evil-7B" not in pages["published.html"].text
    assert "MUPO-Thinker-7B" not in pages["index.html"].text
    published = pages["published.html"].text
    assert "recomputed 76.02" in published
    assert "is never in one table" not in published


def test_a_run_shows_its_samples_with_pictures_prompts_and_checks(pages, entries, site):
    evil = next(entry for entry in entries if entry.name == EVIL)
    page = pages[f"runs/{evil.id}.html"]
    pictures = [a["src"] for t, a in page.tags if t == "img"]
    assert len(pictures) == 28
    assert all((site / "runs" / picture).resolve().is_file() for picture in pictures)
    assert "texts and pictures are official" in page.text
    assert "claimed numbers, all of which follow from the replies" in page.text


def test_the_same_entries_give_the_same_bytes(site, entries, officials, tmp_path):
    build_site(tmp_path / "again", list(reversed(entries)), officials=officials, tasks=TASKS)
    first = {str(p.relative_to(site)): p.read_bytes() for p in site.rglob("*") if p.is_file()}
    again = {
        str(p.relative_to(tmp_path / "again")): p.read_bytes()
        for p in (tmp_path / "again").rglob("*")
        if p.is_file()
    }
    assert first == again


def test_without_entries_the_site_says_so(tmp_path, officials):
    assert build_site(tmp_path, [], officials=officials, tasks=("tsp",)) == 3
    index = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "No run has been added yet" in index
    assert "reproduction.html" not in index


def test_a_reproduction_has_a_page_only_where_there_is_one(tmp_path, officials):
    study = Reproduction(
        title="GRPO, DMPO, MUPO",
        summary="Three methods, <b>eight</b> seeds.",
        notes=("k = 4",),
        sections=(
            Section(
                "From late",
                Sheet("Results", ("method", "QR"), (("GRPO", "0.5"),), ("One note",)),
                (Picture("../curves.png", b"png", "Curves fall", "Learning curves"),),
                (Sheet("Every measure", ("method", "SR"), (("GRPO", "0.7"),)),),
            ),
        ),
        findings=(
            Finding("diversity collapses", "MUPO Fig. 3", (Said("late", "supported", "to 0.1"),)),
            Finding("K = 3 is best", "MUPO Table 4", (Said("late", "not supported", "none"),)),
            Finding("length collapses", "DMPO", (Said("late", "not tested", "one length"),)),
        ),
        marker="smoke: not evidence",
    )
    assert build_site(tmp_path, [], officials=officials, reproduction=study, tasks=()) == 4
    page = Page((tmp_path / "reproduction.html").read_text(encoding="utf-8"))
    for words in (
        "smoke: not evidence",
        "<b>eight</b>",
        "not supported",
        "not tested",
        "0.5",
        "0.7",
    ):
        assert words in page.text
    assert (tmp_path / "pictures" / "curves.png").read_bytes() == b"png"
    assert "reproduction.html" in (tmp_path / "index.html").read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="a verdict is one of"):
        Said("late", "perhaps", "z")


def test_a_folder_that_holds_something_is_left_alone(tmp_path, officials):
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match="is not empty"):
        build_site(tmp_path, [], officials=officials)


def test_an_entry_of_no_official_split_is_refused(tmp_path, entries):
    with pytest.raises(InputError, match="no official split of this version"):
        build_site(tmp_path / "out", entries)


def test_an_entry_that_shows_a_foreign_row_is_refused(tmp_path, entries, officials):
    data = entries[0].model_dump(by_alias=True, mode="json")
    shown = data["shown"][0]
    instance = shown["id"].rpartition("-")[0]
    for changes, message in (
        ({"position": shown["position"] + 1}, "at a false place"),
        ({"position": 10**9}, "position 1000000000 of nano-test, which has 28 instances"),
        ({"id": f"{instance}-/../../x"}, "no official row"),
    ):
        foreign = {**data, "shown": [{**shown, **changes}]}
        changed = type(entries[0]).model_validate(foreign)
        with pytest.raises(InputError, match=message):
            build_site(tmp_path / "out", [changed], officials=officials, tasks=())
        assert not (tmp_path / "out").exists()


def test_the_shipped_entries_are_official():
    for entry in shipped_entries():
        assert entry.benchmark.name in ("mm-np-bench-v1", "np-bench-v1")


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first, second):
    high, low = sorted((luminance(first), luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_colours_have_the_contrast_of_aa(theme):
    blocks = re.findall(r":root \{(.*?)\}", CSS, flags=re.DOTALL)
    colours = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", blocks[theme]))
    for ground in ("card", "page", "soft"):
        for text in ("ink", "muted", "accent", "bad", "right"):
            assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
    assert contrast(colours["warn-ink"], colours["warn-bg"]) >= 4.5
    for mark in ("mark", "right", "feasible", "infeasible", "unparsed", "other"):
        assert contrast(colours[mark], colours["card"]) >= 3, mark
