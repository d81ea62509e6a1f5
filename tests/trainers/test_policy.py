"""Log-probabilities: token by token, behind a shared prompt, and with the prompt in each row."""

import functools
import io
from pathlib import Path

import huggingface_hub
import pytest
import torch
from PIL import Image

from npbench.errors import InputError
from trainers.encoding import Prompt
from trainers.loading import load_policy
from trainers.policy import Policy
from trainers.prefix import Shared
from trainers.token_logprobs import token_logprobs

LENGTHS = (5, 1, 7, 3)


@pytest.fixture(params=["text_model", "idefics_model", "qwen_vl_model"])
def policy(request: pytest.FixtureRequest, make_config) -> Policy:
    folder: Path = request.getfixturevalue(request.param)
    return load_policy(str(folder), make_config(folder, sampling={"temperature": 0.7}))


@pytest.fixture
def picture() -> bytes:
    buffer = io.BytesIO()
    pixels = torch.randint(0, 256, (96, 96, 3), generator=torch.Generator().manual_seed(3))
    Image.fromarray(pixels.to(torch.uint8).numpy()).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.fixture
def prompt(policy: Policy, picture: bytes) -> Prompt:
    images = [picture] if policy.encoder.reads_pictures else []
    return policy.encoder.encode("Find as few vertices as possible.", images)


@pytest.fixture
def replies() -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randint(10, 300, (length,), generator=generator) for length in LENGTHS]


def weights() -> torch.Tensor:
    mask = torch.arange(max(LENGTHS))[None, :] < torch.tensor(LENGTHS)[:, None]
    return torch.randn(mask.shape, generator=torch.Generator().manual_seed(2)) * mask


def gradients(policy: Policy) -> dict[str, torch.Tensor]:
    found = {n: p.grad.clone() for n, p in policy.model.named_parameters() if p.grad is not None}
    policy.model.zero_grad()
    return found


def test_the_shared_prefix_gives_the_gradients_of_the_plain_path(
    policy: Policy, prompt: Prompt, replies: list[torch.Tensor]
) -> None:
    (policy.plain_logprobs(prompt, replies) * weights()).sum().backward()
    plain = gradients(policy)
    shared = Shared(policy.prefix(prompt))
    for rows in ([0, 1], [2], [3]):
        chosen = [replies[row] for row in rows]
        width = max(map(len, chosen))
        logprobs = policy.logprobs(shared.prefix, chosen)
        (logprobs * weights()[rows][:, :width]).sum().backward()
    shared.finish()
    cut = gradients(policy)

    assert set(plain) == set(cut) == {name for name, _ in policy.model.named_parameters()}
    gap = sum((plain[n] - cut[n]).double().square().sum() for n in plain)
    size = sum(plain[n].double().square().sum() for n in plain)
    assert float((gap / size).sqrt()) < 1e-5


def test_a_vocabulary_in_parts_changes_no_gradient(
    policy: Policy,
    prompt: Prompt,
    replies: list[torch.Tensor],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = []
    for part in (1 << 25, 1000):
        in_parts = functools.partial(token_logprobs, part=part)
        monkeypatch.setattr("trainers.policy.token_logprobs", in_parts)
        (policy.plain_logprobs(prompt, replies) * weights()).sum().backward()
        plain = gradients(policy)
        shared = Shared(policy.prefix(prompt))
        (policy.logprobs(shared.prefix, replies) * weights()).sum().backward()
        shared.finish()
        found.append((plain, gradients(policy)))
    for whole, parts in zip(*found, strict=True):
        gap = sum((whole[n] - parts[n]).double().square().sum() for n in whole)
        size = sum(whole[n].double().square().sum() for n in whole)
        assert float((gap / size).sqrt()) < 1e-5


def test_log_probabilities_are_those_of_a_forward_pass_for_every_single_token(
    policy: Policy, prompt: Prompt, replies: list[torch.Tensor]
) -> None:
    with torch.no_grad():
        found = policy.logprobs(policy.prefix(prompt), replies)
        for row, reply in enumerate(replies):
            for place in range(len(reply)):
                so_far = torch.cat([prompt.ids_1L, reply[None, :place]], dim=1)
                pictures = dict(prompt.pictures)
                if "mm_token_type_ids" in pictures:
                    pictures["mm_token_type_ids"] = torch.nn.functional.pad(
                        pictures["mm_token_type_ids"], (0, place)
                    )
                logits = policy.model(input_ids=so_far, **pictures).logits[0, -1] / 0.7
                logits[list(policy.banned_ids)] = -torch.inf
                expected = logits.log_softmax(-1)[reply[place]]
                assert float(found[row, place]) == pytest.approx(float(expected), abs=1e-4)


def test_pictures_change_the_log_probabilities(policy: Policy, replies, picture: bytes) -> None:
    if not policy.encoder.reads_pictures:
        with pytest.raises(InputError, match="reads no pictures"):
            policy.encoder.encode("What is shown?", [picture])
        return
    black = io.BytesIO()
    Image.new("RGB", (96, 96)).save(black, "PNG")
    with torch.no_grad():
        one, two = (
            policy.logprobs(policy.prefix(policy.encoder.encode("What?", [image])), replies)
            for image in (picture, black.getvalue())
        )
    assert float((one - two).abs().max()) > 1e-3


def test_a_placeholder_without_its_picture_is_refused(policy: Policy, picture: bytes) -> None:
    if policy.encoder.reads_pictures:
        with pytest.raises(InputError, match="one <image> for each picture, got 2 for 1"):
            policy.encoder.encode("<image> and <image>", [picture])


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("/nowhere", "that folder is not there"),
        ("./nowhere", "that folder is not there"),
        ("runs/checkpoints/last", "that folder is not there"),
        ("notes.txt", "that folder is a file; give the folder that holds it"),
        ("empty", "config.json"),
        ("somebody/no-such-model", "it is no folder here, and the Hub did not give it"),
        ("npbench-tny", "did you mean 'npbench-tiny'?"),
    ],
)
def test_a_missing_model_is_one_line(
    make_config, text_model: Path, tmp_path: Path, monkeypatch, name, says
) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError) as error:
        load_policy(name, make_config(text_model))
    assert str(error.value).startswith(f"model {name!r} cannot be loaded: ")
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_an_unknown_device_is_refused(make_config, text_model: Path) -> None:
    with pytest.raises(InputError, match="device"):
        load_policy(str(text_model), make_config(text_model, device="gpu"))


def test_bfloat16_keeps_parameters_in_float32(make_config, text_model: Path, replies) -> None:
    exact = load_policy(str(text_model), make_config(text_model))
    config = make_config(text_model, optimizer={"precision": "bfloat16"})
    rough = load_policy(str(text_model), config)
    prompt = exact.encoder.encode("Find.")
    with torch.no_grad():
        one = exact.logprobs(exact.prefix(prompt), replies)
        two = rough.logprobs(rough.prefix(prompt), replies)
    assert {p.dtype for p in rough.model.parameters()} == {torch.float32}
    assert two.dtype == torch.float32
    assert 0.0 < float((one - two).abs().max()) < 0.5
