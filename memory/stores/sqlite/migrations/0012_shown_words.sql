-- Which words of a case a voter was shown, as a revision of what it says; NULL: not known, the present ones are meant.
ALTER TABLE case_views ADD COLUMN content_revision INTEGER;
-- What a vote warns of stands beside what it judges, and belongs to words of its own; 0: it warns of nothing.
ALTER TABLE case_votes ADD COLUMN warning TEXT;
ALTER TABLE case_votes ADD COLUMN warned_on INTEGER NOT NULL DEFAULT 0;
UPDATE case_votes SET warning = signal, warned_on = content_revision, signal = NULL
  WHERE signal IN ('conflict', 'high_risk');
