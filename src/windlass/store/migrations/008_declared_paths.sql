-- What a task is to change, as far as whoever gave it knows.

ALTER TABLE tasks ADD COLUMN paths TEXT NOT NULL DEFAULT '[]';
