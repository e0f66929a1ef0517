-- Two stored names follow the glossary. The older part of the journal keeps the old ones: `store.rows.told` reads both.
ALTER TABLE runs RENAME COLUMN hitch TO trouble;
UPDATE messages SET kind = 'reminder' WHERE kind = 'nudge';
