-- Cases as rows that are found by number: a table without numbers keeps whole rows in the nodes of its tree, and
-- ones as long as these make it so deep that each look-up reads many pages.
-- What belongs to the cases is put aside meanwhile, for it goes with the table that it names.
CREATE TEMP TABLE kept_votes AS SELECT * FROM case_votes;
CREATE TEMP TABLE kept_relations AS SELECT * FROM case_relations;
CREATE TEMP TABLE kept_reports AS SELECT * FROM case_reports;
CREATE TEMP TABLE kept_history AS SELECT * FROM case_history;
CREATE TEMP TABLE kept_views AS SELECT * FROM case_views;
DELETE FROM case_votes;
DELETE FROM case_relations;
DELETE FROM case_reports;
DELETE FROM case_history;
DELETE FROM case_views;

CREATE TABLE cases_in_rows (
  case_id TEXT NOT NULL PRIMARY KEY,
  owner_id TEXT NOT NULL,
  -- stands for exactly its words
  fingerprint BLOB NOT NULL,
  -- stands for its telling words: what is told again with other numbers has the same
  likeness BLOB NOT NULL,
  -- whether search may show it
  is_findable INTEGER NOT NULL,
  lifecycle TEXT NOT NULL CHECK (lifecycle IN ('draft', 'accepted', 'rejected', 'stale')),
  revision INTEGER NOT NULL,
  -- the whole case as JSON
  value TEXT NOT NULL
) STRICT;
INSERT INTO cases_in_rows SELECT * FROM cases;
DROP TABLE cases;
ALTER TABLE cases_in_rows RENAME TO cases;
CREATE INDEX cases_alike ON cases (owner_id, fingerprint);
CREATE INDEX cases_like ON cases (owner_id, likeness, is_findable);

INSERT INTO case_votes SELECT * FROM kept_votes;
INSERT INTO case_relations SELECT * FROM kept_relations;
INSERT INTO case_reports SELECT * FROM kept_reports;
INSERT INTO case_history SELECT * FROM kept_history;
INSERT INTO case_views SELECT * FROM kept_views;
DROP TABLE kept_votes;
DROP TABLE kept_relations;
DROP TABLE kept_reports;
DROP TABLE kept_history;
DROP TABLE kept_views;
