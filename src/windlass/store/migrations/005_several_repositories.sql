-- Agents that work in several repositories.

ALTER TABLE agents ADD COLUMN also TEXT NOT NULL DEFAULT '[]';
