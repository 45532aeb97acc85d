"""``python -m reproduce``."""

from asgat.cli import main
from reproduce.app import app

if __name__ == "__main__":
    main(app)
