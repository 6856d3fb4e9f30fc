-- One key says which reports tell the same: the fingerprint.
DROP INDEX cases_like;
ALTER TABLE cases DROP COLUMN likeness;
ALTER TABLE case_likeness_rules RENAME TO case_fingerprint_rules;
