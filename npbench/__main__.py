"""``python -m npbench`` is ``npbench``."""

from npbench.cli import main

if __name__ == "__main__":
    main()
