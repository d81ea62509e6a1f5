"""The transformers backend on tiny random models: one that sees and one that reads."""

import os
import shutil

import pytest

from evaluators.backends.base import Sampling
from evaluators.backends.local_models import LocalBackend
from evaluators.benchmark import Benchmark, Question
from evaluators.embedders import get_embedder
from evaluators.grading import Gold
from evaluators.runner import RunSettings
from evaluators.sessions import Choice, evaluate
from npbench.errors import InputError

pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def _one_thread():
    import torch

    torch.set_num_threads(1)


@pytest.fixture
def load(tiny_vlm, tiny_lm):
    folders = {"vlm": tiny_vlm, "lm": tiny_lm}

    def make(kind, *, batch_size=8, lora=None, **sampling):
        sampling = {"max_tokens": 12, "k": 4, **sampling}
        return LocalBackend(
            str(folders[kind]), Sampling(**sampling), batch_size=batch_size, lora=lora, device="cpu"
        )

    return make


@pytest.fixture(params=["vlm", "lm"])
def kind(request):
    return request.param


@pytest.fixture
def questions(png, ask):
    """Questions of different lengths, with pictures where the model sees."""

    def make(kind, count=5, **request):
        colours = ("red", "lime", "blue", "white", "black")
        return [
            ask(
                f"q{i}",
                ((png((40 + 30 * i, 50), colours[i % 5]),) if kind == "vlm" else ())
                + ("What is this? " * (1 + 3 * i),),
                **request,
            )
            for i in range(count)
        ]

    return make


def texts(backend, requests):
    found = {}
    for completion in backend.generate(requests):
        assert completion.reply.error is None, completion.reply.error
        key = (completion.request.id, completion.request.decode, completion.sample)
        assert key not in found
        found[key] = completion.reply.text
    return found


def test_greedy_replies_do_not_depend_on_the_batch(kind, load, questions):
    asked = questions(kind)
    together = texts(load(kind, batch_size=5), asked)
    alone = texts(load(kind, batch_size=1), asked)
    assert together == alone
    assert len(set(together.values())) > 1


def test_a_sample_is_the_same_alone_after_a_resume_and_with_the_others(kind, load, questions):
    asked = questions(kind, decode="sampled", samples=(0, 1, 2, 3))
    together = texts(load(kind, batch_size=20), asked)
    alone = texts(load(kind), questions(kind, decode="sampled", samples=(3,), seeds=(1003,)))
    assert alone == {key: text for key, text in together.items() if key[2] == 3}


def test_k_samples_differ_and_the_same_seeds_give_the_same_replies(kind, load, questions):
    asked = questions(kind, 1, decode="sampled", samples=tuple(range(8)))
    backend = load(kind)
    first = texts(backend, asked)
    assert len(set(first.values())) > 1
    assert texts(backend, asked) == first
    others = questions(kind, 1, decode="sampled", samples=tuple(range(8)), seeds=range(8))
    assert texts(backend, others) != first


def test_greedy_and_sampled_rows_share_a_batch_and_do_not_mix(kind, load, questions):
    backend = load(kind)
    greedy = questions(kind, 3)
    sampled = questions(kind, 3, decode="sampled", samples=(0, 1, 2))
    both = [request for pair in zip(greedy, sampled, strict=True) for request in pair]
    assert texts(backend, both) == texts(backend, greedy) | texts(backend, sampled)


def test_a_picture_is_encoded_once_for_all_samples_of_its_question(load, questions, ask):
    backend = load("vlm", batch_size=9)
    seen = []
    tower = backend._loaded.model.model.vision_model
    tower.register_forward_pre_hook(
        lambda _, args, kwargs: seen.append(len(kwargs["pixel_values"])), with_kwargs=True
    )
    question = questions("vlm", 1)[0]
    sampled = ask("q0", question.prompt.parts, decode="sampled", samples=tuple(range(8)))
    assert len(texts(backend, [question, sampled])) == 9
    assert seen == [1]


def test_the_picture_decides_and_not_the_words_alone(load, ask, png):
    backend = load("vlm")
    colours = ("red", "lime", "blue")
    asked = [ask(colour, (png(colour=colour), "What is this?")) for colour in colours]
    assert len(set(texts(backend, asked).values())) > 1


def test_temperature_and_cuts_are_those_of_the_run_and_not_of_the_checkpoint(load, questions):
    asked = questions("lm", 3, decode="sampled", samples=(0, 1, 2))
    greedy = {key[0]: text for key, text in texts(load("lm"), questions("lm", 3)).items()}
    for narrow in ({"top_k": 1}, {"top_p": 1e-6}, {"min_p": 1.0}, {"temperature": 0.01}):
        found = texts(load("lm", **narrow), asked)
        assert {(key[0], text) for key, text in found.items()} == set(greedy.items()), narrow
    wide = texts(load("lm"), asked)
    assert set(wide.values()).isdisjoint(greedy.values())
    assert texts(load("lm", repetition_penalty=1.8), asked) != wide


def test_finish_reasons_tell_a_cut_reply_from_a_finished_one(load, questions):
    asked = questions("lm", 1, decode="sampled", samples=tuple(range(40)))
    found = list(load("lm", max_tokens=60, temperature=2.0, batch_size=40).generate(asked))
    reasons = {completion.reply.finish_reason for completion in found}
    assert reasons == {"stop", "length"}
    for completion in found:
        cut = completion.reply.finish_reason == "length"
        assert (completion.reply.num_tokens == 60) == cut


def test_a_stop_string_ends_a_reply_and_is_named(load, questions):
    asked = questions("lm", 1)
    (whole,) = texts(load("lm"), asked).values()
    stop = whole[4:6]
    (completion,) = load("lm", stop=(stop,)).generate(asked)
    assert completion.reply.text == whole[: whole.index(stop)]
    assert completion.reply.stop_reason == stop
    assert completion.reply.finish_reason == "stop"


def test_questions_that_cannot_be_asked_fail_alone_and_in_their_place(load, ask, png):
    found = {
        c.request.id: c.reply
        for c in load("vlm").generate(
            [
                ask("fine", (png(), "a")),
                ask("broken", (png()[:50], "a")),
                ask("long", ("word " * 3000,)),
                ask("text", ("no picture",)),
                ask("tiny", (png((332, 7)), "a")),
                ask("three", (png(colour="red"), "a", png(), "b", png(), "c")),
            ]
        )
    }
    assert list(found) == ["fine", "broken", "long", "text", "tiny", "three"]
    assert {name for name, reply in found.items() if reply.error} == {"broken", "long"}
    assert "damaged picture" in found["broken"].error
    assert "the model takes 2048" in found["long"].error
    assert found["tiny"].picture_sizes == ((1518, 32),)
    assert len(found["three"].picture_sizes) == 3


def test_a_model_for_text_refuses_pictures(load, ask, png):
    (completion,) = load("lm").generate([ask("q", (png(), "a"))])
    assert completion.reply.error.endswith("takes no pictures")


def test_a_failing_batch_costs_only_its_culprit(load, questions, monkeypatch):
    backend = load("vlm", batch_size=4)
    generate = backend._loaded.model.generate

    def refusing(**inputs):
        if (inputs["pixel_values"].mean(dim=(1, 2, 3, 4)) > 0.99).any():
            raise RuntimeError("out of memory")
        return generate(**inputs)

    monkeypatch.setattr(backend._loaded.model, "generate", refusing)
    found = {c.request.id: c.reply.error for c in backend.generate(questions("vlm", 5))}
    assert found["q3"] == "RuntimeError: out of memory"
    assert [found[f"q{i}"] for i in (0, 1, 2, 4)] == [None] * 4


def test_the_system_prompt_reaches_the_model(kind, load, ask):
    found = texts(load(kind), [ask("a", ("Hi",)), ask("b", ("Hi",), system="Speak like a pirate.")])
    assert len(set(found.values())) == 2


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")
def test_an_adapter_changes_the_replies_and_the_fingerprint(load, questions, tiny_lm, tmp_path):
    peft = pytest.importorskip("peft")
    import torch
    from transformers import AutoModelForCausalLM

    torch.manual_seed(0)
    settings = peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"], init_lora_weights=False)
    base = AutoModelForCausalLM.from_pretrained(tiny_lm)
    peft.get_peft_model(base, settings).save_pretrained(tmp_path / "adapter")
    plain, adapted = load("lm"), load("lm", lora=tmp_path / "adapter")
    assert texts(plain, questions("lm")) != texts(adapted, questions("lm"))
    assert plain.describe().details["lora"] is None
    assert adapted.describe().details["lora"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "int8"}, "dtype must be one of auto, bfloat16, float16, float32, got 'int8'"),
        ({"batch_size": 0}, "batch size must be at least 1, got 0"),
        ({"device": "cuda:0"}, "torch sees no GPU"),
    ],
)
def test_wrong_options_are_one_line(options, message, tiny_lm):
    import torch

    if "device" in options and torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(InputError) as caught:
        LocalBackend(str(tiny_lm), Sampling(), **options)
    assert message in str(caught.value)


def test_bfloat16_runs_and_is_part_of_the_manifest(tiny_lm, questions):
    backend = LocalBackend(str(tiny_lm), Sampling(max_tokens=4), dtype="bfloat16", device="cpu")
    assert backend.describe().details["dtype"] == "bfloat16"
    assert len(texts(backend, questions("lm", 2))) == 2


@pytest.mark.gpu
def test_cuda_gives_a_reply_to_every_sample(tiny_vlm, questions):
    backend = LocalBackend(str(tiny_vlm), Sampling(max_tokens=8), device="cuda")
    found = texts(backend, questions("vlm", decode="sampled", samples=(0, 1, 2, 3)))
    assert len(found) == 20


def test_new_weights_at_the_same_path_refuse_to_resume(tiny_lm, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(tiny_lm, folder)
    question = Question("q", "q", ("2 + 2 = ?",), "4", {}, Gold("4"))
    choice = Choice(Benchmark("quiz", "1", [question], "hash"), None, None, None, None)
    sampling = Sampling(k=2, max_tokens=4)

    def run():
        backend = LocalBackend(str(folder), sampling, device="cpu")
        return evaluate(
            choice,
            backend,
            RunSettings(sampling=sampling),
            tmp_path / "run",
            command="",
            embedder=get_embedder("none"),
        )

    outcome, summary = run()
    assert outcome.made == 3
    assert summary["overall"]["samples"] == 3
    assert run()[0].made == 0
    os.utime(folder / "model.safetensors", ns=(1, 1))
    with pytest.raises(InputError, match=r"another configuration: model\.fingerprint is"):
        run()
