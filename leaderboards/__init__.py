"""Published numbers, submissions, rankings and the leaderboard's site."""
