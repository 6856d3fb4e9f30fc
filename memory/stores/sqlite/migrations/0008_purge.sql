-- Whether words of what was forgotten still stand in the full-text index's blocks, where no search finds them.
CREATE TABLE word_purge (
  only_one INTEGER PRIMARY KEY CHECK (only_one = 1),
  -- grows with each request, so that one that comes meanwhile is not taken for done
  asked INTEGER NOT NULL
) STRICT;
