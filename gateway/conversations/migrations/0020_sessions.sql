-- Browsers that signed in through a provider.
CREATE TABLE sessions (
  id TEXT PRIMARY KEY,
  -- the SHA-256 of the cookie's secret
  digest TEXT NOT NULL UNIQUE,
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  created_at TEXT NOT NULL,
  expires_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Sign-ins that were sent to the provider and have not come back; each comes back once.
CREATE TABLE sign_ins (
  -- the SHA-256 of the state
  digest TEXT PRIMARY KEY,
  -- JSON: what the provider's answer must match
  data TEXT NOT NULL,
  expires_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sign_ins_by_age ON sign_ins (expires_at);
