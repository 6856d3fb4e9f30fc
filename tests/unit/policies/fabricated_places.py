"""Lines with a place for a secret: keys, headers, addresses, command lines, in English and Chinese."""

import json
from collections.abc import Mapping
from pathlib import Path

_FILE = Path(__file__).with_name("data") / "places.json"
KEYED: Mapping[str, str] = json.loads(_FILE.read_bytes())
