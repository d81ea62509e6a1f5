"""Loading a policy."""

from types import SimpleNamespace

import torch

from trainers.loading import rename_cache


def test_models_of_older_transformers_take_their_cache_by_its_new_name() -> None:
    class Old(torch.nn.Module):
        def forward(self, ids, past_key_values=None):
            return SimpleNamespace(past_key_values=past_key_values)

    class New(torch.nn.Module):
        def forward(self, ids, cache=None):
            return SimpleNamespace(cache=cache)

    for model in (Old(), New()):
        rename_cache(model)
        assert model(1, cache="kept").cache == "kept"
