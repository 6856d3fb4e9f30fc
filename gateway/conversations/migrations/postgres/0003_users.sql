CREATE TABLE users (
  id TEXT COLLATE "C" PRIMARY KEY,
  role TEXT NOT NULL,
  created_at TEXT COLLATE "C" NOT NULL,
  disabled_at TEXT COLLATE "C"
);
CREATE TABLE api_tokens (
  id TEXT COLLATE "C" PRIMARY KEY,
  digest TEXT COLLATE "C" NOT NULL UNIQUE,
  user_id TEXT COLLATE "C" NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  created_at TEXT COLLATE "C" NOT NULL,
  expires_at TEXT COLLATE "C",
  revoked_at TEXT COLLATE "C"
);
CREATE INDEX api_tokens_of_users ON api_tokens (user_id, created_at);

CREATE TABLE audit (
  seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at TEXT COLLATE "C" NOT NULL,
  actor TEXT COLLATE "C" NOT NULL,
  action TEXT COLLATE "C" NOT NULL,
  subject TEXT NOT NULL,
  details TEXT NOT NULL
);
CREATE INDEX audit_by_age ON audit (action, at);
CREATE FUNCTION refuse_change_of_audit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  RAISE EXCEPTION 'the audit log is append only';
END $$;
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit
  FOR EACH ROW EXECUTE FUNCTION refuse_change_of_audit();

CREATE TABLE user_quotas (
  user_id TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  most DOUBLE PRECISION,
  PRIMARY KEY (user_id, name)
);
