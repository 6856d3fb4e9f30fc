-- expand
-- What operators approved, where several servers share the database; else files have it. The row without
-- place and name notes that a kind is kept here.
CREATE TABLE approved (
  kind TEXT COLLATE "C" NOT NULL,
  place TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (kind, place, name)
);
