-- What a turn's message had forgotten, until the turn is recorded: a repetition after a crash must not choose again.
CREATE TABLE forgotten_on_request (
  turn_id TEXT PRIMARY KEY,
  told TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TRIGGER forgotten_on_request_told AFTER INSERT ON ended_turns BEGIN
  DELETE FROM forgotten_on_request WHERE turn_id = NEW.turn_id;
END;
