-- Agents that take part in a workflow, whether they speak, and whether they work on from where the others have got to.
ALTER TABLE agents ADD COLUMN workflow TEXT NOT NULL DEFAULT '';
ALTER TABLE agents ADD COLUMN talks INTEGER NOT NULL DEFAULT 1;
ALTER TABLE agents ADD COLUMN shares INTEGER NOT NULL DEFAULT 0;
