-- The steps name items: episodes fade as well as facts.
CREATE TABLE tidied_items (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  owner_id TEXT NOT NULL,
  at TEXT NOT NULL,
  action TEXT NOT NULL,
  fact_id TEXT NOT NULL REFERENCES items (id) ON DELETE CASCADE,
  by_id TEXT,
  undone_at TEXT
) STRICT;
INSERT INTO tidied_items SELECT * FROM tidied_facts;
DROP TABLE tidied_facts;
ALTER TABLE tidied_items RENAME TO tidied_facts;
CREATE INDEX tidied_facts_of ON tidied_facts (owner_id, id DESC);
CREATE INDEX tidied_facts_by_fact ON tidied_facts (fact_id);
