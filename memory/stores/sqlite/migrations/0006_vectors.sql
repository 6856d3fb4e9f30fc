-- Which model made the vectors of the index, and how far it is built.
CREATE TABLE vector_index (
  only_one INTEGER PRIMARY KEY CHECK (only_one = 1),
  model_id TEXT NOT NULL,
  dimension INTEGER NOT NULL,
  -- items up to this place in the order of writing are in it
  built_to INTEGER NOT NULL,
  complete INTEGER NOT NULL
) STRICT;
