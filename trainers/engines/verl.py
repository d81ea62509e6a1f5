"""The plug-in for verl: our advantages, losses, rewards and trainer class under its own hooks.

verl loads it in every process where ``VERL_USE_EXTERNAL_MODULES=trainers.engines.verl_plugin`` is
set (an error there stops the process; verl's entry points would swallow it). ``python -m
trainers.engines.verl_launch`` sets it, here and for Ray's workers.

A method is chosen by one name in two places, ``algorithm.adv_estimator`` and
``actor_rollout_ref.actor.policy_loss.loss_mode``: ``npbench_grpo``, ``npbench_dr_grpo``,
``npbench_dapo``, ``npbench_gspo``, ``npbench_gpg``, ``npbench_grpo_passk``, ``npbench_clip_cov``,
``npbench_dmpo`` and ``npbench_mupo``. Its settings stand in ``algorithm.npbench``.
``trainer.v1.trainer_mode=npbench`` checks the configuration before anything starts, and gives DMPO,
Clip-Cov and MUPO what verl does not pass to an estimator.

- DMPO and Clip-Cov go through the advantages: exact for one optimiser step a batch, and refused
  otherwise.
- MUPO embeds replies in the driver's process, on its device; ``sentence:NAME`` loads the model
  there.
- FlowRL and Share-GRPO need what no hook reaches and are refused.

Written for verl 0.9.1, whose hooks have changed often. What is tested (``make test-verl``, on a
CPU): registration, advantages and losses over verl's own calls, verl's own ``_compute_advantage``
with a queue in memory, rewards through its reward manager, and that every recipe fits its
configuration. What was never run: a training step of verl, which needs GPUs, vLLM or SGLang, and
Ray's workers.
"""

import re
from importlib import import_module
from typing import Any

from npbench.errors import InputError
from trainers.engines.verl_checks import check_config
from trainers.engines.verl_rewards import compute_score

__all__ = ["check_config", "compute_score", "import_verl", "register"]

WINDOW = ((0, 9), (0, 10))
"""The versions of verl that this is written for: from the first, below the second."""
LINE = "pip install 'verl>={}.{},<{}.{}'".format(*WINDOW[0], *WINDOW[1])


def import_verl() -> Any:
    """The library.

    Raises:
        InputError: If it is missing, or of a version outside the window.
    """
    try:
        verl = import_module("verl")
    except ImportError as error:
        raise InputError(f"the verl plug-in needs: {LINE} ({error})") from None
    found = re.match(r"(\d+)\.(\d+)", verl.__version__)
    if found is None or not WINDOW[0] <= tuple(map(int, found.groups())) < WINDOW[1]:
        raise InputError(f"the verl plug-in needs: {LINE}, got verl {verl.__version__}")
    return verl


def register() -> tuple[str, ...]:
    """Puts our estimators, losses and trainer class into verl's registries; again is harmless.

    Returns:
        The names of the methods.

    Raises:
        InputError: If verl or a part of it is missing, or verl is of another version.
    """
    import_verl()
    try:
        core = import_module("verl.trainer.ppo.core_algos")
        trainers_of_verl = import_module("verl.trainer.ppo.v1")
    except ImportError as error:
        raise InputError(
            f"the verl plug-in needs all of verl: pip install 'verl[verl-core]' ({error})"
        ) from None
    from trainers.engines.verl_advantages import ESTIMATORS
    from trainers.engines.verl_losses import LOSSES
    from trainers.engines.verl_trainer import TRAINER_MODE, trainer_class

    for name, estimator in ESTIMATORS.items():
        core.register_adv_est(name)(estimator)
    for name, loss in LOSSES.items():
        core.register_policy_loss(name)(loss)
    trainers_of_verl.register_trainer(TRAINER_MODE)(trainer_class())
    return tuple(ESTIMATORS)
