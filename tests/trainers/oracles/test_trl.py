"""Agreement with TRL's GRPO trainer on a tiny model, in an environment of its own.

TRL computes its loss from token ids and a model; ours from the log-probabilities of the same model.
Its fused head computes these in float32 whatever the model's type, so each loss is compared twice:
with float64 log-probabilities given to both, and with TRL's own forward pass. Options are set one
by one, since TRL's defaults move.
"""

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from trainers.losses import (
    Counts,
    dapo_loss,
    dr_grpo_loss,
    group_relative_advantages,
    grpo_loss,
    gspo_loss,
)

pytestmark = pytest.mark.filterwarnings("ignore")

G, P, PROMPT, T, V = 4, 2, 3, 6, 24
B = P * G
TEMPERATURE = 0.7
LENGTHS = (6, 2, 4, 1, 5, 3, 6, 2)


@pytest.fixture(scope="module")
def trl() -> ModuleType:
    reason = "trl is not installed here; see requirements/oracles-trl.txt"
    patch = pytest.MonkeyPatch()
    patch.setenv("HF_HUB_OFFLINE", "1")
    patch.setenv("HF_HUB_DISABLE_TELEMETRY", "1")
    return pytest.importorskip("trl", reason=reason)


def tiny_model() -> Any:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.Qwen2Config(
        vocab_size=V,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=64,
        initializer_range=0.4,
        pad_token_id=0,
        eos_token_id=1,
        bos_token_id=None,
    )
    return transformers.Qwen2ForCausalLM(config)


def tiny_tokenizer() -> Any:
    tokenizers = pytest.importorskip("tokenizers")
    transformers = pytest.importorskip("transformers")
    words = {f"w{i}": i for i in range(V)}
    backend = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="w2"))
    backend.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend, pad_token="w0", eos_token="w1", padding_side="left"
    )


def make_trainer(trl: ModuleType, folder: Path, **settings: Any) -> Any:
    datasets = pytest.importorskip("datasets")
    options = {
        "loss_type": "grpo",
        "beta": 0.0,
        "epsilon": 0.2,
        "epsilon_high": 0.2,
        "importance_sampling_level": "token",
        "use_bias_correction_kl": False,
        "scale_rewards": "group",
        "num_iterations": 1,
        "steps_per_generation": 1,
        "gradient_accumulation_steps": 1,
        "top_entropy_quantile": 1.0,
        **settings,
    }
    config = trl.GRPOConfig(
        output_dir=str(folder),
        per_device_train_batch_size=B,
        num_generations=G,
        max_completion_length=T,
        temperature=TEMPERATURE,
        gradient_checkpointing=False,
        bf16=False,
        use_cpu=True,
        use_vllm=False,
        report_to=[],
        save_strategy="no",
        logging_steps=1,
        max_steps=1,
        learning_rate=1e-3,
        disable_dropout=True,
        **options,
    )
    # a folder, since TRL loads its reference model from where the policy came from
    checkpoint = folder / "model"
    tiny_model().save_pretrained(checkpoint)
    trainer = trl.GRPOTrainer(
        model=str(checkpoint),
        reward_funcs=lambda completion_ids, **_: [float(sum(ids) % 5) for ids in completion_ids],
        args=config,
        train_dataset=datasets.Dataset.from_dict({"prompt": ["w5 w6 w7", "w8 w9 w10"] * 4}),
        processing_class=tiny_tokenizer(),
    )
    trainer.current_gradient_accumulation_steps = 1
    return trainer


class Rollouts:
    """The same rollouts for both sides."""

    def __init__(self, model: nn.Module) -> None:
        generator = torch.Generator().manual_seed(3)
        self.prompts = torch.randint(2, V, (P, PROMPT), generator=generator)
        self.prompts = self.prompts.repeat_interleave(G, dim=0)
        self.replies = torch.randint(2, V, (B, T), generator=generator)
        self.mask = torch.arange(T)[None, :] < torch.tensor(LENGTHS)[:, None]
        rewards = torch.rand(P, G, generator=generator, dtype=torch.float64)
        self.advantages = group_relative_advantages(rewards, eps=1e-4).flatten()
        self.counts = Counts.of(self.mask, groups=P)
        noise = torch.randn(2, B, T, generator=generator, dtype=torch.float64)
        with torch.no_grad():
            current = self.logprobs(model)
        self.old, self.ref = current + 0.25 * noise[0], current + 0.3 * noise[1]

    def logprobs(self, model: nn.Module) -> Tensor:
        logits = model(torch.cat([self.prompts, self.replies], dim=1), logits_to_keep=T + 1).logits
        log_BTV = (logits[:, :-1] / TEMPERATURE).log_softmax(-1)
        return log_BTV.gather(-1, self.replies[..., None]).squeeze(-1)

    def inputs(self) -> dict[str, Tensor]:
        return {
            "prompt_ids": self.prompts,
            "prompt_mask": torch.ones_like(self.prompts),
            "completion_ids": self.replies,
            "completion_mask": self.mask.long(),
            "advantages": self.advantages,
            "old_per_token_logps": self.old,
            "ref_per_token_logps": self.ref,
            "num_items_in_batch": self.mask.sum(),
        }


def ours(name: str, new: Tensor, rollouts: Rollouts) -> Tensor:
    arguments = (new, rollouts.old, rollouts.advantages, rollouts.mask)
    counts = rollouts.counts
    if name == "dapo":
        return dapo_loss(*arguments, counts=counts)
    if name == "dr_grpo":
        return dr_grpo_loss(*arguments, counts=counts, max_tokens=T)
    if name == "gspo":
        return gspo_loss(*arguments, counts=counts, clip_low=0.05, clip_high=0.06)
    if name == "bnpo":
        return grpo_loss(*arguments, counts=counts, aggregation="token-mean")
    if name.startswith("kl"):
        term = "ratio-k3" if name == "kl corrected" else "k3"
        return grpo_loss(
            *arguments, counts=counts, ref_logprobs_BT=rollouts.ref, kl_coef=0.04, kl_term=term
        )
    return grpo_loss(*arguments, counts=counts)


SETTINGS: dict[str, dict[str, Any]] = {
    "grpo": {"loss_type": "grpo"},
    "bnpo": {"loss_type": "bnpo"},
    "dr_grpo": {"loss_type": "dr_grpo"},
    "dapo": {"loss_type": "dapo", "epsilon_high": 0.28},
    "gspo": {
        "loss_type": "grpo",
        "importance_sampling_level": "sequence",
        "epsilon": 0.05,
        "epsilon_high": 0.06,
    },
    "kl": {"loss_type": "grpo", "beta": 0.04},
    "kl corrected": {"loss_type": "grpo", "beta": 0.04, "use_bias_correction_kl": True},
}


def gradients(model: nn.Module) -> Tensor:
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


@pytest.mark.parametrize(("forward", "tolerance"), [("shared", 1e-12), ("theirs", 5e-6)])
@pytest.mark.parametrize("name", SETTINGS)
def test_loss_and_gradient_agree(
    trl: ModuleType, tmp_path: Path, name: str, forward: str, tolerance: float
) -> None:
    trainer = make_trainer(trl, tmp_path, **SETTINGS[name])
    model = trainer.model.double().train()
    rollouts = Rollouts(model)
    if forward == "shared":

        def score(policy: nn.Module, *_: Any, **__: Any) -> tuple[Tensor, Tensor, None]:
            log_BT = rollouts.logprobs(policy)
            return log_BT, torch.zeros_like(log_BT), None

        trainer._get_per_token_logps_and_entropies = score
    model.zero_grad()
    theirs = trainer._compute_loss(model, rollouts.inputs())
    theirs.backward()
    their_gradient = gradients(model)
    model.zero_grad()
    value = ours(name, rollouts.logprobs(model), rollouts)
    value.backward()
    gap = (gradients(model) - their_gradient).norm() / their_gradient.norm()
    difference = (value - theirs).abs() / theirs.abs()
    print(
        f"trl {name}, {forward} forward: value {difference.item():.1e}, "
        f"gradient {gap.item():.1e} (relative)"
    )
    assert their_gradient.norm() > 1e-4
    assert difference < tolerance
    assert gap < tolerance


def test_advantages_of_a_real_step_agree(trl: ModuleType, tmp_path: Path) -> None:
    trainer = make_trainer(trl, tmp_path)
    seen: dict[str, Tensor] = {}
    calculate, compute = trainer._calculate_rewards, trainer._compute_loss

    def keep_rewards(*arguments: Any) -> Tensor:
        seen["rewards"] = calculate(*arguments)
        return seen["rewards"]

    def keep_advantages(model: nn.Module, inputs: dict[str, Tensor]) -> Tensor:
        seen["advantages"] = inputs["advantages"]
        return compute(model, inputs)

    trainer._calculate_rewards = keep_rewards
    trainer._compute_loss = keep_advantages
    trainer.train()
    expected = group_relative_advantages(seen["rewards"].reshape(P, G), eps=1e-4)
    assert expected.abs().max() > 0.1
    # TRL shuffles rows between scoring and training
    torch.testing.assert_close(
        seen["advantages"].sort().values, expected.flatten().sort().values, rtol=1e-5, atol=1e-6
    )
