-- What each user has used on each day of UTC; it outlives what is deleted.
CREATE TABLE user_days (
  user_id TEXT NOT NULL,
  day TEXT NOT NULL,
  turns INTEGER NOT NULL DEFAULT 0,
  cost_usd REAL NOT NULL DEFAULT 0,
  PRIMARY KEY (user_id, day)
) STRICT, WITHOUT ROWID;
