-- The order of events is that of their conversation, so that who writes one needs to know nothing of the others.
-- Earlier events keep their numbers, which were given over all conversations: nothing is rewritten but an index.
DROP INDEX events_by_conversation;
-- the row's place in the table
ALTER TABLE events RENAME COLUMN seq TO place;
-- NULL: an earlier event
ALTER TABLE events ADD COLUMN own_seq INTEGER;
-- higher than those of the conversation's earlier events, not without gaps
ALTER TABLE events ADD COLUMN seq INTEGER GENERATED ALWAYS AS (coalesce(own_seq, place)) VIRTUAL;
CREATE UNIQUE INDEX events_in_order ON events (conversation_id, seq);
