import tempfile

import pytest
from hypothesis.configuration import set_hypothesis_home_dir

from evaluators.worker_pool import AlgebraPool

# Its cache must not appear in the working tree.
set_hypothesis_home_dir(tempfile.gettempdir() + "/hypothesis")


@pytest.fixture(scope="session")
def pool():
    pool = AlgebraPool(workers=1, deadline=30.0)
    yield pool
    pool.close()
