"""MM-NP-Bench: NP-hard optimisation problems as pictures and text, with verdicts to trust."""
