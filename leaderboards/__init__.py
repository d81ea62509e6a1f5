"""Tables, plots and the leaderboard site; empty until the first of them exists."""
