-- An instance has a table of its own. Before, it was the JSON body of a document, and the older part of the journal tells
-- of it as that document.
CREATE TABLE instances (
    place INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    project TEXT NOT NULL,
    workflow TEXT NOT NULL,
    source TEXT NOT NULL,
    agents TEXT NOT NULL,
    files TEXT NOT NULL,
    kickoff TEXT NOT NULL,
    "after" INTEGER NOT NULL,
    stays INTEGER NOT NULL,
    gate INTEGER NOT NULL,
    limits TEXT NOT NULL,
    deadline REAL,
    handoffs TEXT NOT NULL,
    triggers TEXT NOT NULL,
    draining INTEGER NOT NULL,
    line TEXT NOT NULL,
    began TEXT NOT NULL,
    heads TEXT NOT NULL,
    landing TEXT NOT NULL,
    started_at REAL NOT NULL,
    ended_at REAL,
    ending TEXT,
    reason TEXT NOT NULL
);
CREATE INDEX instances_live ON instances (place) WHERE ended_at IS NULL;

INSERT INTO instances (
    id, name, project, workflow, source, agents, files, kickoff, "after", stays, gate, limits, deadline, handoffs,
    triggers, draining, line, began, heads, landing, started_at, ended_at, ending, reason
)
SELECT
    project || '/' || json_extract(body, '$.name'),
    json_extract(body, '$.name'),
    project,
    json_extract(body, '$.workflow'),
    json_extract(body, '$.source'),
    json_extract(body, '$.agents'),
    coalesce(json_extract(body, '$.files'), '{}'),
    coalesce(json_extract(body, '$.kickoff'), ''),
    coalesce(json_extract(body, '$.after'), 0),
    coalesce(json_extract(body, '$.stays'), 0),
    coalesce(json_extract(body, '$.gate'), 1),
    coalesce(json_extract(body, '$.limits'), '{}'),
    json_extract(body, '$.deadline'),
    coalesce(json_extract(body, '$.handoffs'), '{}'),
    coalesce(json_extract(body, '$.triggers'), '{}'),
    coalesce(json_extract(body, '$.draining'), 0),
    coalesce(json_extract(body, '$.line'), ''),
    coalesce(json_extract(body, '$.began'), '{}'),
    coalesce(json_extract(body, '$.heads'), '{}'),
    coalesce(json_extract(body, '$.landing'), '[]'),
    coalesce(json_extract(body, '$.started_at'), 0.0),
    json_extract(body, '$.ended_at'),
    json_extract(body, '$.ending'),
    coalesce(json_extract(body, '$.reason'), '')
FROM documents WHERE substr(name, 1, 16) = 'system/instance/' ORDER BY place;

DELETE FROM documents WHERE substr(name, 1, 16) = 'system/instance/';
