"""CPU milliseconds to cluster a prompt's replies: python tests/performance/measure_grouping.py."""

import statistics
import time

import numpy as np

from trainers.grouping import cluster_replies

CASES = ((15, 3, 3, 1024), (12, 2, 4, 1024), (15, 3, 3, 32), (32, 4, 4, 1024), (64, 8, 4, 1024))
"""Replies, clusters, smallest size, dimensions; the first is MUPO's setting with its embedder."""


def main() -> None:
    rng = np.random.default_rng(0)
    print("replies clusters min_size dimensions  median ms")
    for replies, clusters, min_size, dimensions in CASES:
        times = []
        for _ in range(9):
            embeddings = rng.normal(size=(replies, dimensions))
            start = time.process_time()
            cluster_replies(embeddings, clusters=clusters, min_size=min_size, rng=rng)
            times.append(1e3 * (time.process_time() - start))
        median = statistics.median(times)
        print(f"{replies:7d} {clusters:8d} {min_size:8d} {dimensions:10d} {median:10.1f}")


if __name__ == "__main__":
    main()
