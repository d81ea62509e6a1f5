"""The HTML page of a run, or of several runs side by side, in one file without a network."""

__all__: tuple[str, ...] = ()
