"""Sizes of the papers' models, and the FLOPs of their passes: what a cost on paper starts from.

FLOPs are those of matrix products and attention, two for a multiply-add.
"""

from dataclasses import dataclass

__all__ = [
    "BACKWARD",
    "QWEN_VL_3B",
    "QWEN_VL_7B",
    "QWEN_VL_32B",
    "Sizes",
    "forward_flops",
]

BACKWARD = 2
"""Forward passes that a backward pass is worth: gradients by inputs and by weights."""
BYTES = 2
"""Of a number in bfloat16."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The shape of a Qwen2.5-VL model: what FLOPs and bytes follow from."""

    name: str
    width: int
    mlp: int
    layers: int
    heads: int
    kv_heads: int
    vocabulary: int
    tied: bool
    """Whether the head is the embedding."""
    vision_width: int = 1280
    vision_mlp: int = 3420
    vision_layers: int = 32
    vision_heads: int = 16
    full_attention: tuple[int, ...] = (7, 15, 23, 31)
    """Vision layers in which every patch looks at every other one; elsewhere at its window."""
    patch: int = 14
    merge: int = 2
    """A picture token is made of merge x merge patches."""
    window: int = 112
    """Pixels of a window's side."""

    @property
    def head_width(self) -> int:
        """Numbers of a query, key or value of one head."""
        return self.width // self.heads

    @property
    def kv_width(self) -> int:
        """Numbers of a token's keys, or values, in one layer."""
        return self.kv_heads * self.head_width

    @property
    def layer_weights(self) -> int:
        """Weights that a token is multiplied by in the language model, head left out."""
        attention = 2 * self.width * (self.width + self.kv_width)
        return self.layers * (attention + 3 * self.width * self.mlp)

    @property
    def head_weights(self) -> int:
        """Weights of the head."""
        return self.vocabulary * self.width

    @property
    def patch_weights(self) -> int:
        """Weights that a patch is multiplied by in the vision tower, the merger left out."""
        layer = 4 * self.vision_width**2 + 3 * self.vision_width * self.vision_mlp
        # a picture stands for two frames of a video
        return self.vision_layers * layer + 3 * 2 * self.patch**2 * self.vision_width

    @property
    def merger_weights(self) -> int:
        """Weights that a picture token is multiplied by between tower and language model."""
        merged = self.merge**2 * self.vision_width
        return merged * (merged + self.width)

    @property
    def parameters(self) -> int:
        """All parameters, biases and norms included."""
        language = self.layers * (self.width + 2 * self.kv_width + 2 * self.width) + self.width
        vision = self.vision_layers * (7 * self.vision_width + 2 * self.vision_mlp)
        vision += (1 + self.merge**2) * self.vision_width + self.width
        heads = self.head_weights * (1 if self.tied else 2)
        matrices = self.layer_weights + self.patch_weights + self.merger_weights
        return matrices + heads + language + vision

    @property
    def decoded_bytes(self) -> int:
        """Bytes of weights that are read to decode one token of each reply, in bfloat16."""
        return BYTES * (self.layer_weights + self.head_weights)

    @property
    def cache_bytes(self) -> int:
        """Bytes of one token's keys and values, in bfloat16."""
        return BYTES * 2 * self.layers * self.kv_width


QWEN_VL_3B = Sizes(
    name="Qwen2.5-VL-3B",
    width=2048,
    mlp=11008,
    layers=36,
    heads=16,
    kv_heads=2,
    vocabulary=151936,
    tied=True,
)
QWEN_VL_7B = Sizes(
    name="Qwen2.5-VL-7B",
    width=3584,
    mlp=18944,
    layers=28,
    heads=28,
    kv_heads=4,
    vocabulary=152064,
    tied=False,
)
QWEN_VL_32B = Sizes(
    name="Qwen2.5-VL-32B",
    width=5120,
    mlp=27648,
    layers=64,
    heads=40,
    kv_heads=8,
    vocabulary=152064,
    tied=False,
    vision_mlp=3456,
)


def _vision_flops(sizes: Sizes, picture_tokens: int) -> int:
    """Forward FLOPs of the vision tower on one picture."""
    patches = picture_tokens * sizes.merge**2
    weights = 2 * patches * sizes.patch_weights + 2 * picture_tokens * sizes.merger_weights
    seen_in_window = min((sizes.window // sizes.patch) ** 2, patches)
    wide = len(sizes.full_attention)
    seen = wide * patches + (sizes.vision_layers - wide) * seen_in_window
    return weights + 4 * sizes.vision_width * patches * seen


def _token_flops(sizes: Sizes, tokens: int, before: int) -> int:
    """Forward FLOPs of the language model's layers on tokens behind ``before`` others."""
    seen = tokens * before + tokens * (tokens + 1) // 2
    return 2 * sizes.layer_weights * tokens + 4 * sizes.layers * sizes.width * seen


def forward_flops(
    sizes: Sizes,
    *,
    picture_tokens: int,
    text_tokens: int,
    reply_tokens: int,
    replies: int,
    shared_prefix: bool,
) -> int:
    """Forward FLOPs of replies behind one prompt, logits at reply tokens only.

    Args:
        sizes: The model.
        picture_tokens: Of the prompt's picture; 0 without one.
        text_tokens: Of the rest of the prompt.
        reply_tokens: Of each reply.
        replies: Behind this prompt.
        shared_prefix: Whether picture and prompt run once; otherwise once for each reply.

    References:
        Two FLOPs a weight and token, and attention over what a token sees: Kaplan et al.,
        `Scaling laws for neural language models <https://arxiv.org/abs/2001.08361>`_, 2020,
        section 2.1, here with causal attention counted exactly.
    """
    length = picture_tokens + text_tokens
    prompt = _vision_flops(sizes, picture_tokens) + _token_flops(sizes, length, 0)
    reply = _token_flops(sizes, reply_tokens, length) + 2 * sizes.head_weights * reply_tokens
    return (1 if shared_prefix else replies) * prompt + replies * reply
