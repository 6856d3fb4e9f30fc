-- Conversations that a person keeps at the top of their list: all branches of one line, or none.
ALTER TABLE conversations ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;
CREATE INDEX conversations_by_line ON conversations (coalesce(root_id, id));
CREATE INDEX conversations_pinned ON conversations (user_id, last_activity_at DESC) WHERE pinned = 1;
