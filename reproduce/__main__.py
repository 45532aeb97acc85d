"""``python -m reproduce``."""

from asgat.cli import main
from asgat.nn.registry import register_model
from reproduce.app import app
from reproduce.geom_gcn import SPEC


def run() -> None:
    register_model("geom-gcn", SPEC)
    main(app)


if __name__ == "__main__":
    run()
