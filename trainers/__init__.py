"""Losses, groupings and rewards of GRPO and its rivals."""
