"""What every backend promises, whatever makes its replies."""

import json

import pytest

from evaluators.backends import BACKENDS, BackendOptions, make_backend
from evaluators.backends.base import Completion, Sampling
from evaluators.benchmarks.np_bench import split_benchmark
from evaluators.prompts import build_prompt
from npbench.building import build_split
from npbench.errors import InputError
from npbench.splits import Request
from npbench.storage import open_split

RUN_HERE = ["transformers", "openai", "policy", "scripted"]
"""vllm lives in an environment of its own: tests/evaluators/backends/test_offline_vllm.py."""


@pytest.fixture(scope="module")
def split(tmp_path_factory):
    folder = tmp_path_factory.mktemp("split")
    request = Request.make(
        suite="nano", split="test", seed=3, per_task=3, tasks=("knapsack",), modality="image"
    )
    build_split(request, folder)
    return open_split(folder)


@pytest.fixture(params=RUN_HERE)
def make(request, split, server, tmp_path):
    """Makes one backend, again and again."""
    options = {"k": 3, "max_tokens": 8}
    if request.param == "transformers":
        model = str(request.getfixturevalue("tiny_vlm"))
    elif request.param == "scripted":
        model = str(tmp_path / "script.jsonl")
        lines = [
            {"id": row["id"], "sample": sample, "decode": decode, "reply": f"{decode} {sample}"}
            for row in split.rows(("id",))
            for decode, sample in (("greedy", 0), *(("sampled", s) for s in range(3)))
        ]
        (tmp_path / "script.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    else:
        model = {"openai": "tiny", "policy": "random"}[request.param]
    urls = (server().url,) if request.param == "openai" else ()

    def build():
        return make_backend(
            request.param,
            BackendOptions(
                model=model, sampling=Sampling(**options), split=split, base_urls=urls, device="cpu"
            ),
        )

    return build


@pytest.fixture
def requests(split, ask):
    def make(decode="sampled", samples=(0, 1, 2), questions=None):
        return [
            ask(
                question.id,
                build_prompt(question.parts, prompt_format="plain").parts,
                decode=decode,
                samples=samples,
            )
            for question in questions or split_benchmark(split.folder).questions
        ]

    return make


def by_key(completions):
    return {(c.request.id, c.request.decode, c.sample): c.reply for c in completions}


def test_every_sample_comes_exactly_once_under_its_own_key(make, requests):
    asked = [*requests("greedy", (0,)), *requests()]
    asked.sort(key=lambda request: request.id)
    completions = list(make().generate(asked))
    assert all(isinstance(completion, Completion) for completion in completions)
    keys = [(c.request.id, c.request.decode, c.sample) for c in completions]
    wanted = [(r.id, r.decode, sample) for r in asked for sample in r.samples]
    assert sorted(keys) == sorted(wanted)
    for completion in completions:
        assert completion.request in asked
        assert completion.reply.error is None
        assert isinstance(completion.reply.text, str)
        assert completion.reply.finish_reason in ("stop", "length")


def test_the_same_requests_give_the_same_replies_from_a_new_backend(make, requests):
    assert by_key(make().generate(requests())) == by_key(make().generate(requests()))


def test_single_samples_are_those_of_the_whole_run(make, requests):
    whole = by_key(make().generate(requests()))
    part = by_key(make().generate(requests(samples=(2,))[1:]))
    for key, reply in part.items():
        expected = whole[key]
        assert reply.text == expected.text or reply.text.endswith("seed 1000")


def test_requests_are_drawn_only_when_there_is_room(make, requests):
    drawn = []

    def endless():
        while True:
            for request in requests("greedy", (0,)):
                drawn.append(request)
                yield request

    stream = make().generate(endless())
    next(stream)
    stream.close()
    assert len(drawn) <= 64


def test_no_request_gives_no_completion(make):
    assert list(make().generate([])) == []


def test_a_backend_says_what_it_is_in_plain_data(make):
    backend = make()
    assert backend.name in BACKENDS
    info = backend.describe()
    assert info == make().describe()
    assert info.name
    assert info.fingerprint
    json.dumps([dict(info.details), dict(info.versions)])


def test_names_and_options_that_do_not_fit_are_one_line(split):
    def build(name, **options):
        return make_backend(name, BackendOptions(model="m", sampling=Sampling(), **options))

    with pytest.raises(InputError, match="did you mean 'transformers'"):
        build("transformer")
    with pytest.raises(InputError, match="the openai backend needs --base-url"):
        build("openai")
    with pytest.raises(InputError, match="--base-url goes with the openai backend"):
        build("policy", base_urls=("http://x/v1",))
    with pytest.raises(InputError, match="--lora goes with"):
        build("policy", lora=split.folder)
    with pytest.raises(InputError, match="answers NP-hard tasks only"):
        build("policy")
    with pytest.raises(InputError, match="unknown solver 'm'"):
        build("policy", split=split)


def test_a_missing_library_is_one_line_with_the_pip_command():
    with pytest.raises(InputError, match=r"the vllm backend needs: pip install 'npbench\[vllm\]'"):
        make_backend("vllm", BackendOptions(model="m", sampling=Sampling()))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[]", "line 1 is no object"),
        ('{"id": 3, "reply": "x"}', "id must be text, got 3"),
        ('{"id": "a"}', "has neither a reply nor an error"),
        ('{"id": "a", "reply": 5}', "reply must be str, got 5"),
        ('{"id": "a", "reply": "x", "sample": -1}', "sample must be an integer from 0"),
        ('{"id": "a", "reply": "x", "decode": "beam"}', "decode must be greedy or sampled"),
        ('{"id": "a", "reply": "x", "num_tokens": "3"}', "num_tokens must be int"),
        ('{"id": "a", "reply": "x", "text": "y"}', "unknown field 'text'"),
        ('{"id": "a", "reply": "x"}\n{"id": "a", "reply": "y"}', "line 2 repeats greedy sample 0"),
    ],
)
def test_a_wrong_script_is_refused_with_its_line(line, message, tmp_path):
    path = tmp_path / "script.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(InputError) as caught:
        make_backend("scripted", BackendOptions(model=str(path), sampling=Sampling()))
    assert message in str(caught.value)
