-- By which rules the likenesses and fingerprints of cases were made; no row: it is not known.
CREATE TABLE case_likeness_rules (
  digest BLOB NOT NULL
) STRICT;
