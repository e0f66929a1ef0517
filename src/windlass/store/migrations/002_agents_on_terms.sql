-- What an agent may do and is told by its file; how a run is kept in its place, and what went wrong in it.

ALTER TABLE agents ADD COLUMN role TEXT NOT NULL DEFAULT '';
ALTER TABLE agents ADD COLUMN body TEXT NOT NULL DEFAULT '';
ALTER TABLE agents ADD COLUMN model TEXT NOT NULL DEFAULT '';
ALTER TABLE agents ADD COLUMN permissions TEXT NOT NULL DEFAULT 'edit';
ALTER TABLE agents ADD COLUMN sandbox TEXT NOT NULL DEFAULT 'auto';

ALTER TABLE runs ADD COLUMN sandbox TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN model TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN hitch TEXT NOT NULL DEFAULT 'null';
