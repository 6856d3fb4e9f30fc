-- expand
-- The end of a conversation switches off schedules of its own user alone: one that is off could name the
-- conversation of another.
CREATE OR REPLACE FUNCTION switch_schedules_off() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  UPDATE schedules SET enabled = 0, due_at = NULL, problem = json_build_object(
    'code', 'conversation_deleted',
    'message', 'Its conversation was deleted, so it is switched off. Choose another one to switch it on again.',
    'at', to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
  )::text WHERE conversation_id = old.id AND user_id = old.user_id;
  RETURN NULL;
END $$;
