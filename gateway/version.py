"""The version and the name of the command, each in this one place."""

from pathlib import Path

VERSION = "0.2.0"
"""Also the wheel's, `/readyz`'s, the page's and the API description's."""

COMMAND = (
    "python app.py" if Path(__file__).parents[1].joinpath("pyproject.toml").is_file() else "candor"
)
"""What a person types: the first in a checkout, the second where the wheel is installed."""
