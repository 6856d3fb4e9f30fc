"""Finds secrets in texts and masks them, for logs, memory, errors and events.

Five kinds: values that the caller knows (`known`), tokens in the formats of providers (`formats`),
values under or beside a key (`pairs`), values that a sentence states (`statements`), and what
stands where only secrets stand (`places`). A mask keeps up to four characters, `sk-a…[masked]`,
and no digit of a number.
The time grows with the text's length alone: each expression is bounded or reads on without going
back. Masking twice gives the same as masking once.
"""

from policies.secrets.detect import mask_secrets, mask_secrets_counted
from policies.secrets.fields import field_name, is_secret_field, is_secret_item, tells_nothing
from policies.secrets.keys import names_secret
from policies.secrets.known import known_spans
from policies.secrets.text import MASK, MAX_KEPT_CHARS, Masked

__all__ = [
    "MASK",
    "MAX_KEPT_CHARS",
    "Masked",
    "field_name",
    "is_secret_field",
    "is_secret_item",
    "known_spans",
    "mask_secrets",
    "mask_secrets_counted",
    "names_secret",
    "tells_nothing",
]
