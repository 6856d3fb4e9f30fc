-- Episodes are like by their texts, or by type, tags and time; marks of texts are not compared any more.
ALTER TABLE episodes DROP COLUMN marks;
DROP TABLE episode_marks;
