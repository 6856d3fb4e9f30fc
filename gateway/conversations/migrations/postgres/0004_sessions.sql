CREATE TABLE sessions (
  id TEXT COLLATE "C" PRIMARY KEY,
  digest TEXT COLLATE "C" NOT NULL UNIQUE,
  user_id TEXT COLLATE "C" NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  created_at TEXT COLLATE "C" NOT NULL,
  expires_at TEXT COLLATE "C" NOT NULL
);

CREATE TABLE sign_ins (
  digest TEXT COLLATE "C" PRIMARY KEY,
  data TEXT NOT NULL,
  expires_at TEXT COLLATE "C" NOT NULL
);
CREATE INDEX sign_ins_by_age ON sign_ins (expires_at);
