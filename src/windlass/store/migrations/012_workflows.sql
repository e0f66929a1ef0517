-- Agents that take part in a workflow, whether they speak, whether they work on from where the others have got to or look
-- at the user's checkout, and which tools they are given.
ALTER TABLE agents ADD COLUMN workflow TEXT NOT NULL DEFAULT '';
ALTER TABLE agents ADD COLUMN talks INTEGER NOT NULL DEFAULT 1;
ALTER TABLE agents ADD COLUMN shares INTEGER NOT NULL DEFAULT 0;
ALTER TABLE agents ADD COLUMN copies INTEGER NOT NULL DEFAULT 0;
ALTER TABLE agents ADD COLUMN tools TEXT NOT NULL DEFAULT 'null';
