-- The last event of a turn holds the turn's result, which the turn holds itself: its data is empty where both are the
-- same but for the order of the ids, and is read from the turn.
UPDATE events SET data = '' WHERE type = 'turn.completed' AND EXISTS (
  SELECT 1 FROM turns t WHERE t.id = events.turn_id
    AND CASE WHEN json_valid(t.result) AND json_valid(events.data) THEN
      json_remove(t.result, '$.turn_id', '$.conversation_id') = json_remove(events.data, '$.turn_id', '$.conversation_id')
    END);
