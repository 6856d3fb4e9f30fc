-- Work that one node does for all nodes.
CREATE TABLE duties (
  name TEXT COLLATE "C" PRIMARY KEY,
  node_id TEXT COLLATE "C" NOT NULL,
  incarnation TEXT COLLATE "C" NOT NULL
);

-- JSON: what clients are shown of an approval while its run waits for the answer.
ALTER TABLE approvals ADD COLUMN question TEXT;

-- Rises with each change, so that two programs do not overwrite each other's.
ALTER TABLE schedules ADD COLUMN revision BIGINT NOT NULL DEFAULT 0;
