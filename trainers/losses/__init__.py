"""Losses as pure functions of tensors.

GRPO, Dr.GRPO, DAPO, GSPO, GPG, FlowRL, Clip-Cov, GRPO pass@k, DMPO, MUPO and Share-GRPO. Data are
positional, hyper-parameters keyword-only. Losses are minimised. Each returns its rows' share of the
optimiser step's loss, so that micro-batches and processes add up.
"""

from trainers.losses.advantages import (
    cluster_advantages,
    flat_groups,
    group_relative_advantages,
    mean_centred_advantages,
    pass_at_k_advantages,
)
from trainers.losses.aggregate import Aggregation, Counts, aggregate
from trainers.losses.clip_cov import clip_cov_loss, clip_cov_tokens
from trainers.losses.dapo import dapo_loss, informative_groups, overlong_punishment
from trainers.losses.dmpo import DMPO_SETTINGS, dmpo_loss, dmpo_target, dmpo_term
from trainers.losses.flowrl import LogZHead, flowrl_loss
from trainers.losses.gpg import gpg_advantages, gpg_alpha, gpg_loss
from trainers.losses.group_gradient import (
    group_weights,
    two_pass_backward,
    weighted_scores,
    weights_as_advantages,
)
from trainers.losses.groups import rows_by_group, to_rows
from trainers.losses.grpo import dr_grpo_loss, grpo_loss
from trainers.losses.gspo import gspo_loss
from trainers.losses.importance import sampler_correction
from trainers.losses.kl import kl_estimate, kl_loss
from trainers.losses.masks import mask_from_lengths, row_mean, row_sum
from trainers.losses.mupo import (
    balance_weights,
    cosine_lambda,
    exponential_lambda,
    mupo_code_rewards,
    mupo_loss,
    mupo_rewards,
)
from trainers.losses.share_grpo import hierarchical_advantages, share_grpo_loss, shared_rows

__all__ = [
    "DMPO_SETTINGS",
    "Aggregation",
    "Counts",
    "LogZHead",
    "aggregate",
    "balance_weights",
    "clip_cov_loss",
    "clip_cov_tokens",
    "cluster_advantages",
    "cosine_lambda",
    "dapo_loss",
    "dmpo_loss",
    "dmpo_target",
    "dmpo_term",
    "dr_grpo_loss",
    "exponential_lambda",
    "flat_groups",
    "flowrl_loss",
    "gpg_advantages",
    "gpg_alpha",
    "gpg_loss",
    "group_relative_advantages",
    "group_weights",
    "grpo_loss",
    "gspo_loss",
    "hierarchical_advantages",
    "informative_groups",
    "kl_estimate",
    "kl_loss",
    "mask_from_lengths",
    "mean_centred_advantages",
    "mupo_code_rewards",
    "mupo_loss",
    "mupo_rewards",
    "overlong_punishment",
    "pass_at_k_advantages",
    "row_mean",
    "row_sum",
    "rows_by_group",
    "sampler_correction",
    "share_grpo_loss",
    "shared_rows",
    "to_rows",
    "two_pass_backward",
    "weighted_scores",
    "weights_as_advantages",
]
