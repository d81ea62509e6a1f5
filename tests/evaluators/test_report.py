"""The page of a run: the summary's numbers, foreign text that cannot act, one line on bad input."""

import base64
import hashlib
import io
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner
from PIL import Image

from evaluators.cli import eval_command, grade_command
from evaluators.paired import compare_folders
from evaluators.reports.browsing import MOST_PICTURE_BYTES, chosen_ids
from evaluators.reports.command import report_command
from evaluators.reports.loading import load_runs
from evaluators.reports.measures import curve
from npbench.building import build_split
from npbench.errors import InputError
from npbench.splits import Request

HOSTILE = (
    "</script><script>hacked()</script><img src=x onerror=hacked()> \u202e \u2028 \x00 {{ 7 * 7 }}"
)
FIXTURES = Path(__file__).parent / "benchmarks" / "fixtures"


def call(command, *arguments):
    words = [str(argument) for argument in arguments]
    result = CliRunner().invoke(command, words, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result


class Page(HTMLParser):
    """What a page holds: its cells by table, row, run and metric; its scripts; its text."""

    def __init__(self, path):
        super().__init__()
        self.html = Path(path).read_text("utf-8")
        self.cells = {}
        self.shown = {}
        self.scripts = []
        self.words = []
        self.policy = ""
        self._table = self._metric = self._target = None
        self._heads = ["", ""]
        self.feed(self.html)
        self.data = json.loads(self.scripts[0])

    def handle_starttag(self, tag, attributes):
        of = dict(attributes)
        if tag == "table":
            self._table, self._heads = of["data-table"], ["", ""]
        elif tag == "tr":
            self._heads[1] = ""
        elif tag == "th" and of.get("scope") == "row":
            self._target = 1 if of.get("class") == "run" else 0
            self._heads[self._target] = ""
        elif tag == "td" and "data-metric" in of:
            self._metric = (self._table, *self._heads, of["data-metric"])
            self.cells[self._metric] = float(of["data-value"]) if "data-value" in of else None
            self.shown[self._metric] = []
            self._target = "cell"
        elif tag == "script":
            self.scripts.append("")
            self._target = "script"
        elif tag == "meta" and of.get("http-equiv") == "Content-Security-Policy":
            self.policy = of["content"]

    def handle_endtag(self, tag):
        if tag in ("th", "td", "script"):
            self._target = None
        if tag == "td":
            self._metric = None

    def handle_data(self, text):
        if self._target == "script":
            self.scripts[-1] += text
            return
        self.words.append(text)
        if self._target == "cell":
            self.shown[self._metric].append(text)
        elif self._target is not None:
            self._heads[self._target] += text

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module")
def split(tmp_path_factory):
    """Pictures in two styles and texts: two instances of three tasks."""
    folder = tmp_path_factory.mktemp("split")
    request = Request.make(
        suite="nano",
        split="test",
        seed=3,
        per_task=2,
        tasks=("tsp", "graph_coloring", "knapsack"),
        modality="both",
        styles=("light", "dark"),
    )
    build_split(request, folder)
    return folder


@pytest.fixture(scope="module")
def runs(split, tmp_path_factory):
    """Finished runs of two solvers and of hostile replies."""
    folder = tmp_path_factory.mktemp("runs")
    for solver in ("random", "greedy"):
        call(eval_command, "--data", split, "--backend", "policy", "--model", solver, "-k", 4,
             "--out", folder / solver)  # fmt: skip
    made = (folder / "greedy" / "samples.jsonl").read_text("utf-8").splitlines()
    ids = [json.loads(line)["id"] for line in made]
    lines = [{"id": name, "reply": HOSTILE} for name in dict.fromkeys(ids)]
    script = folder / "<b>hostile.jsonl"
    script.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    call(eval_command, "--data", split, "--backend", "scripted", "--model", script, "-k", 1,
         "--out", folder / "hostile")  # fmt: skip
    return folder


@pytest.fixture
def copy(runs, tmp_path):
    """A run of one's own."""

    def make(name, as_name=None):
        return shutil.copytree(runs / name, tmp_path / (as_name or name))

    return make


@pytest.fixture
def page(tmp_path):
    """The page of runs."""

    def make(*arguments):
        out = tmp_path / "page.html"
        call(report_command, *arguments, "--out", out)
        return Page(out)

    return make


def summary_of(run):
    return json.loads((run / "summary.json").read_text())


def test_every_number_of_the_tables_is_the_summarys(runs, page):
    shown = page(runs / "random")
    summary = summary_of(runs / "random")
    tables = {"by task": {**summary["tasks"], "overall": summary["overall"]},
              "by group": summary["groups"],
              **{f"by {name}": values for name, values in summary["by"].items()}}  # fmt: skip
    tables = {name: rows for name, rows in tables.items() if len(rows) > 1}
    assert {"by task", "by group", "by modality", "by style"} <= set(tables)
    for table, rows in tables.items():
        for name, row in rows.items():
            for metric in ("sr", "qr", "acc@1", "acc@k", "mean@k", "sr_at_k", "qr_at_k"):
                key = (table, name, "", metric)
                assert shown.cells[key] == row[metric]
                number, *ends = shown.shown[key]
                assert number == f"{row[metric]:.3f}"
                expected = "–".join(f"{end:.3f}".removeprefix("0") for end in row["ci"][metric])
                assert ends == [expected]
            for floor in ("trivial", "random", "greedy", "heuristic"):
                assert shown.cells[table, name, "", floor] == row["floors"][floor]["qr"]
    for name, row in summary["tasks"].items():
        for state, count in row["states"].items():
            assert shown.cells.get(("states of samples", name, "", state), 0) == count
        for metric in ("distinct_feasible", "solution_distance"):
            assert shown.cells["diversity", name, "", metric] == row["diversity"][metric]


def test_the_interval_of_a_curve_at_the_runs_k_is_the_summarys(runs):
    (run,) = load_runs([runs / "random"], data=None)
    overall = summary_of(runs / "random")["overall"]
    for name, metric in (("acc@k", "acc@k"), ("sr@k", "sr_at_k"), ("qr@k", "qr_at_k")):
        points = curve(overall["curves"][name], run.scores(), name)
        assert [point.k for point in points] == [1, 2, 4]
        assert points[-1].value == overall[metric]
        assert list(points[-1].interval) == overall["ci"][metric]


def test_the_head_is_the_manifests(runs, page):
    text = page(runs / "random").text
    manifest = json.loads((runs / "random" / "run.json").read_text())
    for value in (
        manifest["model"]["name"],
        manifest["model"]["fingerprint"],
        manifest["benchmark"]["version"],
        manifest["benchmark"]["dataset_hash"],
        manifest["backend"],
        manifest["prompt_format"],
        manifest["command"],
        manifest["started"],
        "max tokens 2048",
        "seed 0",
    ):
        assert value in text


def test_several_runs_stand_side_by_side_with_paired_differences(runs, page):
    shown = page(runs / "random", runs / "greedy")
    for label in ("random", "greedy"):
        summary = summary_of(runs / label)
        assert shown.cells["by task", "tsp", label, "qr"] == summary["tasks"]["tsp"]["qr"]
        assert shown.cells["overall", label, "", "sr"] == summary["overall"]["sr"]
    metrics = compare_folders(runs / "greedy", runs / "random")["metrics"]
    assert "greedy minus random" in shown.text
    for row in metrics.values():
        assert f'data-value="{row["difference"]}"' in shown.html
    assert shown.html.count('<svg class="chart"') == 6
    assert shown.data["runs"] == ["random", "greedy"]
    assert {reply["run"] for reply in shown.data["questions"][0]["replies"]} == {0, 1}


def test_runs_of_one_model_are_told_apart_by_their_folders(copy, page):
    shown = page(copy("greedy", "a"), copy("greedy", "b"))
    assert shown.data["runs"] == ["greedy, a", "greedy, b"]


def test_a_page_is_the_same_bytes_again_and_replaces_an_older_one(runs, tmp_path):
    pages = []
    for _ in range(2):
        call(report_command, runs / "random", runs / "hostile", "--out", tmp_path / "page.html")
        pages.append((tmp_path / "page.html").read_bytes())
    assert pages[0] == pages[1]
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_a_single_run_has_its_page_beside_it(copy):
    run = copy("greedy")
    assert call(report_command, run).stdout == f"{run / 'report.html'}\n"
    assert Page(run / "report.html").data["questions"]


def test_the_page_needs_nothing_from_outside(runs, page):
    html = re.sub(r'"data:image/[a-z]+;base64,[^"]*"', "", page(runs / "random").html)
    assert set(re.findall(r"https?://[^\s\"']+", html)) <= {"http://www.w3.org/2000/svg"}
    assert "@import" not in html
    assert " src=" not in html


def test_only_our_script_may_run_and_foreign_text_is_inert(runs, page):
    shown = page(runs / "hostile")
    assert len(shown.scripts) == 2
    assert shown.html.count("<script") == 2
    code = base64.b64encode(hashlib.sha256(shown.scripts[1].encode()).digest()).decode()
    assert f"script-src 'sha256-{code}'" in shown.policy
    assert "default-src 'none'" in shown.policy
    assert "innerHTML" not in shown.scripts[1]
    assert "<b>" not in shown.html
    assert "&lt;b&gt;hostile.jsonl" in shown.html
    assert not {"\u202e", "\u2028", "\x00"} & set(shown.html)
    reply = shown.data["questions"][0]["replies"][0]["text"]
    assert reply == HOSTILE.replace("\u202e", "⟦U+202E⟧").replace("\u2028", "⟦U+2028⟧").replace(
        "\x00", "⟦U+0000⟧"
    )


def test_a_page_says_how_many_questions_it_shows_of_how_many(runs, page):
    few = page(runs / "random", "--samples", 4)
    assert len(few.data["questions"]) == 4
    assert "4 of 18 questions" in few.text
    assert page(runs / "random", "--samples", 0).data["questions"] == []
    every = page(runs / "random")
    assert "all 18 questions" in every.text
    names = {question["id"] for question in every.data["questions"]}
    assert {question["id"] for question in few.data["questions"]} < names


def test_questions_are_chosen_evenly_and_by_nothing_but_their_ids():
    cells = {f"{task}-{i}": (task,) for task in ("a", "b", "c") for i in range(50)}
    chosen = chosen_ids(cells, 12)
    assert sorted(name[0] for name in chosen) == ["a"] * 4 + ["b"] * 4 + ["c"] * 4
    assert chosen_ids(dict(reversed(cells.items())), 12) == chosen
    assert chosen_ids(cells, 9) < chosen
    assert chosen_ids(cells, 1000) == set(cells)


def test_a_picture_is_there_once(runs, page):
    shown = page(runs / "random", runs / "greedy", runs / "hostile")
    used = [p["key"] for question in shown.data["questions"] for p in question["pictures"]]
    assert len(used) == 12
    assert set(used) == set(shown.data["pictures"])
    assert shown.html.count("data:image/png;base64,") == len(set(used))


def test_the_page_keeps_the_room_of_a_picture_before_it_is_read(runs, page):
    shown = page(runs / "random")
    for question in shown.data["questions"]:
        for picture in question["pictures"]:
            _, _, encoded = shown.data["pictures"][picture["key"]].partition(";base64,")
            with Image.open(io.BytesIO(base64.b64decode(encoded))) as decoded:
                assert tuple(picture["size"]) == decoded.size


def test_an_unfinished_run_says_so_and_shows_the_whole_questions(copy, page):
    run = copy("random")
    lines = (run / "samples.jsonl").read_text().splitlines(keepends=True)
    (run / "samples.jsonl").write_text("".join(lines[:-7]))
    (run / "summary.json").unlink()
    shown = page(run)
    assert "random is unfinished: it has 83 of 90 samples" in shown.text
    assert "finishes it" in shown.text
    assert shown.cells["by task", "overall", "", "sr"] == 1.0
    assert len(shown.data["questions"]) == 17
    both = page(run, copy("greedy"))
    assert "no paired difference of greedy and random" in both.text


def test_samples_that_were_not_asked_for_and_repeated_lines_are_said(copy, page):
    run = copy("random")
    lines = (run / "samples.jsonl").read_text().splitlines(keepends=True)
    foreign = json.dumps({**json.loads(lines[0]), "id": "elsewhere"}) + "\n"
    extra = json.dumps({**json.loads(lines[1]), "sample": 7}) + "\n"
    (run / "samples.jsonl").write_text("".join([*lines, lines[0], foreign, extra]))
    text = page(run).text
    assert "random holds samples that it was not asked for: 2, such as greedy sample 0 of" in text
    assert "random: 1 repeated lines were counted once" in text
    assert "unfinished" not in text


def test_a_sample_that_was_not_asked_for_stands_for_no_other(copy, page):
    run = copy("random")
    lines = (run / "samples.jsonl").read_text().splitlines(keepends=True)
    renamed = json.dumps({**json.loads(lines[0]), "id": "elsewhere"}) + "\n"
    (run / "samples.jsonl").write_text("".join([renamed, *lines[1:]]))
    text = page(run).text
    assert "such as greedy sample 0 of elsewhere; they are in no table" in text
    assert "random is unfinished: it has 89 of 90 samples" in text


def test_a_summary_that_is_not_of_the_samples_is_not_believed(copy, page):
    run = copy("random")
    summary = summary_of(run)
    summary["overall"]["states"]["right"] += 1
    summary["overall"]["qr"] = 9.0
    (run / "summary.json").write_text(json.dumps(summary))
    shown = page(run)
    assert "its summary is not of its samples" in shown.text
    assert shown.cells["by task", "overall", "", "qr"] < 1


def test_without_its_data_a_run_has_tables_and_replies_and_says_what_lacks(copy, page, split):
    run = copy("random")
    for name in ("run.json", "summary.json"):
        text = (run / name).read_text()
        (run / name).write_text(text.replace(json.dumps(str(split)), '"gone"'))
    shown = page(run)
    assert "its questions are not shown" in shown.text
    assert shown.cells["by task", "tsp", "", "qr"] == summary_of(run)["tasks"]["tsp"]["qr"]
    assert shown.data["pictures"] == {}
    assert len(shown.data["questions"][0]["replies"]) == 5
    assert page(run, "--data", split).data["pictures"]
    (run / "summary.json").unlink()
    assert "so no tables" in page(run).text


def test_eval_ends_with_the_command_that_makes_the_page(split, tmp_path):
    done = call(eval_command, "--data", split, "--backend", "policy", "--model", "trivial",
                "-k", 0, "--out", tmp_path / "run")  # fmt: skip
    command = f"npbench report {tmp_path / 'run'}"
    assert command in done.stderr
    shown = call(report_command, *command.split()[2:]).stdout.strip()
    assert Page(shown).cells["by task", "overall", "", "acc@1"] is not None


@pytest.fixture
def answered(tmp_path, monkeypatch):
    """A finished run of a benchmark of questions, from its files, with a picture that is large."""
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")

    def run(name):
        source = tmp_path / name
        shutil.copytree(FIXTURES / name, source)
        noise = Image.effect_noise((700, 500), 90).convert("RGB")
        for colour in ("red", "blue"):
            noise.save(source / f"{colour}.png")
        count = sum(len(file.read_text("utf-8").splitlines()) for file in source.glob("*.jsonl"))
        out = tmp_path / f"{name}-run"
        script = tmp_path / "empty.jsonl"
        script.write_text("")
        call(eval_command, "--benchmark", name, "--from", source, "--rows", count, "--backend",
             "scripted", "--model", script, "-k", 0, "--max-failed", 1, "--out", out)  # fmt: skip
        lines = [json.loads(line) for line in (out / "samples.jsonl").read_text().splitlines()]
        for line in lines:
            line |= {"reply": f"Answer: {line['gold']}", "error": None}
        (out / "samples.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        call(grade_command, out)
        return out

    return run


def test_official_metric_families_are_on_the_page_and_large_pictures_are_reduced(answered, page):
    run = answered("we-math")
    shown = page(run)
    official = summary_of(run)["official"]["greedy"]
    assert "official metrics" in shown.text
    for name, value in official.items():
        assert f">{name}</th>" in shown.html
        assert value is None or f'data-value="{value}"' in shown.html
    assert "Success rate and quality ratio" not in shown.text
    question = shown.data["questions"][0]
    assert question["gold"]
    (picture,) = question["pictures"]
    assert picture["note"] == "reduced from 700 × 500 to 700 × 500"
    assert picture["size"] == [700, 500]
    kind, _, encoded = shown.data["pictures"][picture["key"]].partition(";base64,")
    assert kind == "data:image/jpeg"
    assert len(base64.b64decode(encoded)) < MOST_PICTURE_BYTES
    assert Image.open(io.BytesIO(base64.b64decode(encoded))).size == (700, 500)


@pytest.fixture(scope="module")
def bad(runs, tmp_path_factory):
    """Runs with a fault each, and what else is no run."""
    root = tmp_path_factory.mktemp("bad")
    for name in ("run", "empty", "foreign", "foreign summary", "another summary", "lacking",
                 "torn", "elsewhere", "poor summary", "odd summary", "endless summary",
                 "text summary", "endless score", "many", "text k"):  # fmt: skip
        shutil.copytree(runs / "random", root / name)
    shutil.copytree(runs / "greedy", root / "other")
    (root / "notes.txt").write_text("mine")
    (root / "empty" / "samples.jsonl").write_text("")
    change(root / "foreign" / "run.json", schema=9)
    change(root / "foreign summary" / "summary.json", schema=9)
    change(root / "another summary" / "summary.json", manifest={})
    overall = summary_of(root / "run")["overall"]
    poor = {name: value for name, value in overall.items() if name != "sr"}
    change(root / "poor summary" / "summary.json", overall=poor)
    change(root / "odd summary" / "summary.json", overall={**overall, "floors": "<b>"})
    change(root / "endless summary" / "summary.json", overall={**overall, "qr": float("nan")})
    change(root / "text summary" / "summary.json", overall={**overall, "qr": "0.5"})
    lines = (root / "endless score" / "samples.jsonl").read_text()
    (root / "endless score" / "samples.jsonl").write_text(
        re.sub(r'"score": [0-9.]+', '"score": 1e999', lines, count=1)
    )
    sampling = json.loads((root / "run" / "run.json").read_text())["sampling"]
    change(root / "many" / "run.json", sampling={**sampling, "k": 10**9})
    change(root / "text k" / "run.json", sampling={**sampling, "k": "4"})
    change(root / "lacking" / "run.json", sampling=None)
    with (root / "torn" / "samples.jsonl").open("a") as file:
        file.write('{"benchmark": "nano"}\n')
    manifest = json.loads((root / "run" / "run.json").read_text())
    manifest["benchmark"]["dataset_hash"] = "0"
    (root / "elsewhere" / "run.json").write_text(json.dumps(manifest))
    change(root / "elsewhere" / "summary.json", manifest=manifest)
    request = Request.make(suite="nano", split="test", seed=4, per_task=1, tasks=("tsp",))
    build_split(request, root / "other split")
    return root


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["absent"], "absent is no run: it has no run.json"),
        (["empty"], "empty has no samples yet; go on with: npbench eval --resume empty"),
        (["run", "run"], "a run is given twice"),
        (["run", "other"], "several runs need --out"),
        (["run", "--samples", "-1"], "samples must be at least 0, got -1"),
        (["run", "--out", "absent/page.html"], "absent is no folder"),
        (["run", "--out", "other"], "other is no file"),
        (["run", "--out", "notes.txt"], "notes.txt exists and is no report"),
        (["run", "--data", "absent"], "absent"),
        (["run", "--data", "other split"], "is not what run was asked"),
        (["foreign"], "has the schema 9; this version reads 1"),
        (["foreign summary"], "has the schema 9; this version reads 1"),
        (["another summary"], "is of another run than run.json"),
        (["poor summary"], "poor summary/summary.json cannot be read: it has no 'sr'"),
        (["odd summary"], "cannot be read: overall.floors Input should be a valid dictionary"),
        (["endless summary"], "overall.qr Input should be a finite number"),
        (["text summary"], "overall.qr Input should be a valid number"),
        (["endless score"], "must be finite, got inf; npbench grade writes it anew"),
        (["many"], "sampling.k Input should be less than or equal to 100000"),
        (["text k"], "sampling.k Input should be a valid integer"),
        (["lacking"], "lacking/run.json cannot be read: sampling Field required"),
        (["torn"], "is no sample: id"),
        (["run", "elsewhere", "--out", "p.html"], "asked different questions"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_and_leaves_everything_as_it_was(
    arguments, message, bad, monkeypatch
):
    monkeypatch.chdir(bad)
    before = sorted(bad.rglob("*"))
    with pytest.raises(InputError) as caught:
        call(report_command, *arguments)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert sorted(bad.rglob("*")) == before
    assert (bad / "notes.txt").read_text() == "mine"


def change(path, **fields):
    data = {**json.loads(path.read_text()), **fields}
    path.write_text(json.dumps({name: value for name, value in data.items() if value is not None}))
