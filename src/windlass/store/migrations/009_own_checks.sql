-- What the checks said about an agent's commits before it was done.

ALTER TABLE runs ADD COLUMN checked TEXT;
