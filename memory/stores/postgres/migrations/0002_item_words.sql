-- The full-text index: the stores write the words of items, already stemmed; no dictionary of the server takes part.
CREATE TABLE item_words (
  seq BIGINT PRIMARY KEY,
  -- stems, single characters, and tokens of the scope, which begin with a colon
  words TSVECTOR NOT NULL,
  -- the terms that a found row is ranked by: title, body, before, after, characters, each a line
  terms TEXT NOT NULL
  -- the index answers alone: what is wide stands aside, so that few pages are visited for many rows
) WITH (toast_tuple_target = 128);
ALTER TABLE item_words ALTER COLUMN words SET STORAGE EXTERNAL;
-- a search reads no list of what is still to be indexed
CREATE INDEX item_words_found ON item_words USING gin (words) WITH (fastupdate = off);
