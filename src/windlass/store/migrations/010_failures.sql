-- How often the checks failed by a change's own fault: the gate learns from it. Until now only what went back to an
-- author was known.
ALTER TABLE changes ADD COLUMN failures INTEGER NOT NULL DEFAULT 0;
UPDATE changes SET failures = returns;
