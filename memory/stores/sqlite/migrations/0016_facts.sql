-- Until when an item held, if another one came in its place; NULL while it holds.
ALTER TABLE items ADD COLUMN valid_until TEXT;

-- Facts: what a person told. The text stands in `items`, under the same id.
CREATE TABLE facts (
  fact_id TEXT NOT NULL PRIMARY KEY,
  owner_id TEXT NOT NULL,
  -- its words without spelling: the same is kept once
  form TEXT NOT NULL,
  -- who put it there: request, statement, correction, model, person
  origin TEXT NOT NULL,
  -- whether it stands in the profile
  lasting INTEGER NOT NULL,
  -- the words of the conversation that a model's fact rests on
  evidence TEXT,
  -- the fact that came in its place; NULL while it holds
  superseded_by TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX facts_holding ON facts (owner_id, form) WHERE superseded_by IS NULL;
CREATE INDEX facts_superseded ON facts (superseded_by) WHERE superseded_by IS NOT NULL;

-- What is always in a person's context; theirs to edit.
CREATE TABLE profiles (
  owner_id TEXT NOT NULL PRIMARY KEY,
  text TEXT NOT NULL,
  updated_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;
