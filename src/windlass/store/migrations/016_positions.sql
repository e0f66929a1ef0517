-- How far a file was read, a page agreed with its file, which ports an agent has, which collisions it was told of: small
-- facts that change often. They were documents, and the older part of the journal tells of them as documents; now they
-- have a table of their own, and no event tells of them.
CREATE TABLE positions (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

INSERT INTO positions SELECT id, body FROM documents
WHERE substr(name, 1, 12) = 'system/chat/' OR substr(name, 1, 13) = 'system/notes/'
    OR substr(name, 1, 6) IN ('ports/', 'radar/');

DELETE FROM documents WHERE id IN (SELECT key FROM positions);
