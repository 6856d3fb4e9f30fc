-- Whether turns of conversations are items; no row: not known, so that all of them are looked at once.
CREATE TABLE record_switch (
  only_one INTEGER PRIMARY KEY CHECK (only_one = 1),
  is_on INTEGER NOT NULL
) STRICT;
