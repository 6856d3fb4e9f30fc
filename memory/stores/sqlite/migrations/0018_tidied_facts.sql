-- What was tidied among facts, step by step, so that each can be taken back.
CREATE TABLE tidied_facts (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  owner_id TEXT NOT NULL,
  at TEXT NOT NULL,
  action TEXT NOT NULL,
  fact_id TEXT NOT NULL REFERENCES facts (fact_id) ON DELETE CASCADE,
  by_id TEXT,
  undone_at TEXT
) STRICT;
CREATE INDEX tidied_facts_of ON tidied_facts (owner_id, id DESC);
CREATE INDEX tidied_facts_by_fact ON tidied_facts (fact_id);
