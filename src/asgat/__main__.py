"""``python -m asgat``."""

from asgat.cli import main

if __name__ == "__main__":
    main()
