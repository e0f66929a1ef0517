-- One table per noun, the journal, and agents' output.
-- `place` is the order of arrival; a message's is the number in its id. Nested fields are JSON text.

CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE counters (kind TEXT PRIMARY KEY, last INTEGER NOT NULL) WITHOUT ROWID;

CREATE TABLE projects (
    place INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    path TEXT NOT NULL,
    main TEXT NOT NULL,
    added_at REAL NOT NULL
);
CREATE INDEX projects_by_path ON projects (path);

CREATE TABLE agents (
    place INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    instance TEXT NOT NULL,
    project TEXT NOT NULL,
    provider TEXT NOT NULL,
    source TEXT NOT NULL,
    options TEXT NOT NULL,
    attended INTEGER NOT NULL,
    persistent INTEGER NOT NULL,
    created_at REAL NOT NULL,
    retired_at REAL
);
CREATE INDEX agents_by_name ON agents (name);
CREATE INDEX agents_at_work ON agents (created_at) WHERE retired_at IS NULL;
CREATE INDEX agents_retired ON agents (created_at) WHERE retired_at IS NOT NULL;

CREATE TABLE tasks (
    place INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    project TEXT NOT NULL,
    title TEXT NOT NULL,
    brief TEXT NOT NULL,
    parent TEXT NOT NULL,
    needs TEXT NOT NULL,
    agent TEXT NOT NULL,
    state TEXT NOT NULL,
    reason TEXT NOT NULL,
    created_at REAL NOT NULL,
    ended_at REAL,
    unmet INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX tasks_unfinished ON tasks (place) WHERE state IN ('open', 'active', 'waiting', 'landing');
CREATE INDEX tasks_by_agent ON tasks (agent) WHERE agent <> '';
CREATE INDEX tasks_ready ON tasks (place) WHERE state = 'open' AND unmet = 0;

-- `task_needs` and `tasks.unmet` (how many needs are not done) are an index over `tasks`, kept by these triggers:
-- with them a ready task is found without looking at those that wait.
CREATE TABLE task_needs (
    task TEXT NOT NULL,
    need TEXT NOT NULL,
    PRIMARY KEY (task, need)
) WITHOUT ROWID;
CREATE INDEX task_needs_by_need ON task_needs (need);

CREATE TRIGGER task_added_with_needs AFTER INSERT ON tasks WHEN NEW.needs <> '[]' BEGIN
    INSERT INTO task_needs SELECT DISTINCT NEW.id, value FROM json_each(NEW.needs);
    UPDATE tasks SET unmet = (
        SELECT count(*) FROM task_needs AS n LEFT JOIN tasks AS needed ON needed.id = n.need
        WHERE n.task = tasks.id AND needed.state IS NOT 'done'
    ) WHERE id = NEW.id;
END;

CREATE TRIGGER task_added_done AFTER INSERT ON tasks WHEN NEW.state = 'done' BEGIN
    UPDATE tasks SET unmet = (
        SELECT count(*) FROM task_needs AS n LEFT JOIN tasks AS needed ON needed.id = n.need
        WHERE n.task = tasks.id AND needed.state IS NOT 'done'
    ) WHERE id IN (SELECT task FROM task_needs WHERE need = NEW.id);
END;

CREATE TRIGGER task_needs_changed AFTER UPDATE OF needs ON tasks WHEN OLD.needs IS NOT NEW.needs BEGIN
    DELETE FROM task_needs WHERE task = NEW.id;
    INSERT INTO task_needs SELECT DISTINCT NEW.id, value FROM json_each(NEW.needs);
    UPDATE tasks SET unmet = (
        SELECT count(*) FROM task_needs AS n LEFT JOIN tasks AS needed ON needed.id = n.need
        WHERE n.task = tasks.id AND needed.state IS NOT 'done'
    ) WHERE id = NEW.id;
END;

CREATE TRIGGER task_done AFTER UPDATE OF state ON tasks WHEN (OLD.state = 'done') <> (NEW.state = 'done') BEGIN
    UPDATE tasks SET unmet = (
        SELECT count(*) FROM task_needs AS n LEFT JOIN tasks AS needed ON needed.id = n.need
        WHERE n.task = tasks.id AND needed.state IS NOT 'done'
    ) WHERE id IN (SELECT task FROM task_needs WHERE need = NEW.id);
END;

CREATE TABLE runs (
    place INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    agent TEXT NOT NULL,
    task TEXT NOT NULL,
    number INTEGER NOT NULL,
    provider TEXT NOT NULL,
    cause TEXT NOT NULL,
    session TEXT NOT NULL,
    base TEXT NOT NULL,
    identity TEXT NOT NULL,
    stopping TEXT NOT NULL,
    said TEXT NOT NULL,
    outcome TEXT,
    reason TEXT NOT NULL,
    evidence TEXT NOT NULL,
    result TEXT NOT NULL,
    exit_code INTEGER,
    usage TEXT NOT NULL,
    starting_at REAL NOT NULL,
    started_at REAL,
    ended_at REAL
);
CREATE INDEX runs_by_agent ON runs (agent, number);
CREATE INDEX runs_live ON runs (place) WHERE outcome IS NULL;

CREATE TABLE messages (
    place INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    channel TEXT NOT NULL,
    sender TEXT NOT NULL,
    "to" TEXT NOT NULL,
    body TEXT NOT NULL,
    kind TEXT NOT NULL,
    reply_to TEXT NOT NULL,
    sent_at REAL NOT NULL
);
CREATE INDEX messages_by_channel ON messages (channel);
CREATE INDEX messages_asking ON messages (place) WHERE kind = 'ask';
CREATE INDEX messages_answering ON messages (reply_to) WHERE kind = 'answer';

CREATE TABLE deliveries (
    place INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    sent INTEGER NOT NULL,
    message TEXT NOT NULL,
    reader TEXT NOT NULL,
    receipt TEXT NOT NULL,
    run TEXT NOT NULL
);
CREATE INDEX deliveries_undelivered ON deliveries (sent)
    WHERE receipt IN ('pending', 'delivered') AND reader NOT IN ('human', 'system');
CREATE INDEX deliveries_by_run ON deliveries (run, sent) WHERE run <> '';

CREATE TABLE documents (
    place INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    project TEXT NOT NULL,
    name TEXT NOT NULL,
    body TEXT NOT NULL,
    author TEXT NOT NULL,
    revision INTEGER NOT NULL,
    written_at REAL NOT NULL
);

CREATE TABLE changes (
    place INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    project TEXT NOT NULL,
    branch TEXT NOT NULL,
    head TEXT NOT NULL,
    title TEXT NOT NULL,
    agent TEXT NOT NULL,
    task TEXT NOT NULL,
    undoes TEXT NOT NULL,
    state TEXT NOT NULL,
    hold TEXT,
    reason TEXT NOT NULL,
    returns INTEGER NOT NULL,
    candidate TEXT NOT NULL,
    checks TEXT NOT NULL,
    landing TEXT NOT NULL,
    queued_at REAL NOT NULL
);
CREATE INDEX changes_queue ON changes (place) WHERE state NOT IN ('landed', 'closed');
CREATE INDEX changes_ended ON changes (place) WHERE state IN ('landed', 'closed');
CREATE INDEX changes_by_undone ON changes (undoes) WHERE undoes <> '';
CREATE INDEX changes_by_task ON changes (task) WHERE task <> '';

CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    time REAL NOT NULL,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    payload TEXT NOT NULL,
    digest TEXT NOT NULL,
    chain TEXT NOT NULL
);

-- Where the journal ends, so that events cut off its end are missed.
CREATE TABLE tip (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    seq INTEGER NOT NULL,
    chain TEXT NOT NULL
);
INSERT INTO tip VALUES (1, 0, '0000000000000000000000000000000000000000000000000000000000000000');

CREATE TABLE chunks (
    place INTEGER PRIMARY KEY,
    run TEXT NOT NULL,
    "offset" INTEGER NOT NULL,
    length INTEGER NOT NULL,
    at REAL NOT NULL,
    content BLOB NOT NULL
);
CREATE UNIQUE INDEX chunks_by_run ON chunks (run, "offset");
