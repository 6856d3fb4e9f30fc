-- Cases: what incidents taught. The item that search finds stands in `items`, under the same id.
CREATE TABLE cases (
  case_id TEXT PRIMARY KEY,
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
) STRICT, WITHOUT ROWID;
CREATE INDEX cases_alike ON cases (owner_id, fingerprint);
CREATE INDEX cases_like ON cases (owner_id, likeness, is_findable);

-- One vote a conversation with its branches.
CREATE TABLE case_votes (
  case_id TEXT NOT NULL REFERENCES cases (case_id) ON DELETE CASCADE,
  voter TEXT NOT NULL,
  helpful INTEGER,
  signal TEXT,
  app_code TEXT,
  environment TEXT,
  at TEXT NOT NULL,
  content_revision INTEGER NOT NULL,
  PRIMARY KEY (case_id, voter)
) STRICT, WITHOUT ROWID;

-- A pair stands here once, the lesser id first: both ends know, and none alone.
CREATE TABLE case_relations (
  lesser TEXT NOT NULL REFERENCES cases (case_id) ON DELETE CASCADE,
  greater TEXT NOT NULL REFERENCES cases (case_id) ON DELETE CASCADE,
  relation TEXT NOT NULL,
  score REAL NOT NULL,
  PRIMARY KEY (lesser, greater),
  CHECK (lesser < greater)
) STRICT, WITHOUT ROWID;
CREATE INDEX case_relations_back ON case_relations (greater, lesser);

-- Near-duplicates that were merged into a case, as they were told.
CREATE TABLE case_reports (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  case_id TEXT NOT NULL REFERENCES cases (case_id) ON DELETE CASCADE,
  conversation_id TEXT,
  at TEXT NOT NULL,
  -- as JSON
  content TEXT NOT NULL
) STRICT;
CREATE INDEX case_reports_of ON case_reports (case_id, seq);

CREATE TABLE case_history (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  case_id TEXT NOT NULL REFERENCES cases (case_id) ON DELETE CASCADE,
  at TEXT NOT NULL,
  event TEXT NOT NULL,
  by TEXT NOT NULL,
  user_id TEXT NOT NULL,
  conversation_id TEXT,
  -- JSON object
  details TEXT NOT NULL
) STRICT;
CREATE INDEX case_history_of ON case_history (case_id, seq);

-- What a voter was shown; `own`: they wrote to it, so they have nothing to judge there.
CREATE TABLE case_views (
  voter TEXT NOT NULL,
  case_id TEXT NOT NULL REFERENCES cases (case_id) ON DELETE CASCADE,
  shown_at TEXT NOT NULL,
  own INTEGER NOT NULL,
  PRIMARY KEY (voter, case_id)
) STRICT, WITHOUT ROWID;
-- So that forgetting a case looks at its own alone.
CREATE INDEX case_views_of ON case_views (case_id);
