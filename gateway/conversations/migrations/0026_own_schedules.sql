-- The end of a conversation switches off schedules of its own user alone: one that is off could name the
-- conversation of another.
DROP TRIGGER schedules_without_conversation;
CREATE TRIGGER schedules_without_conversation AFTER DELETE ON conversations BEGIN
  UPDATE schedules SET enabled = 0, due_at = NULL, problem = json_object(
    'code', 'conversation_deleted',
    'message', 'Its conversation was deleted, so it is switched off. Choose another one to switch it on again.',
    'at', strftime('%Y-%m-%dT%H:%M:%fZ')
  ) WHERE conversation_id = old.id AND user_id = old.user_id;
END;
