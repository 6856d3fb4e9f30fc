-- Users, and what they sign in with. A user without a row here has the role `user`.
CREATE TABLE users (
  id TEXT PRIMARY KEY,
  role TEXT NOT NULL,
  created_at TEXT NOT NULL,
  disabled_at TEXT
) STRICT, WITHOUT ROWID;
CREATE TABLE api_tokens (
  id TEXT PRIMARY KEY,
  -- the SHA-256 of the token, which has 256 random bits
  digest TEXT NOT NULL UNIQUE,
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  created_at TEXT NOT NULL,
  expires_at TEXT,
  revoked_at TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX api_tokens_of_users ON api_tokens (user_id, created_at);

-- Who did what; rows are added, and deleted when they are old.
CREATE TABLE audit (
  seq INTEGER PRIMARY KEY,
  at TEXT NOT NULL,
  actor TEXT NOT NULL,
  action TEXT NOT NULL,
  subject TEXT NOT NULL,
  -- JSON
  details TEXT NOT NULL
) STRICT;
CREATE INDEX audit_by_age ON audit (action, at);
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit BEGIN
  SELECT raise(ABORT, 'the audit log is append only');
END;

-- The limits that a user has instead of everybody's; without a row everybody's hold.
CREATE TABLE user_quotas (
  user_id TEXT NOT NULL,
  name TEXT NOT NULL,
  -- NULL: there is no limit
  most REAL,
  PRIMARY KEY (user_id, name)
) STRICT, WITHOUT ROWID;
