-- What a task wants of its agent: its prompt is made for that.

ALTER TABLE tasks ADD COLUMN wants TEXT NOT NULL DEFAULT 'execute';
