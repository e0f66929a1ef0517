-- Every question the store is asked, by name.

-- name: projects
SELECT * FROM projects WHERE :forgotten OR forgotten_at IS NULL ORDER BY place;

-- name: project_at
SELECT * FROM projects WHERE path = :path AND forgotten_at IS NULL ORDER BY place LIMIT 1;

-- name: agents_at_work
SELECT * FROM agents WHERE retired_at IS NULL AND created_at < :before AND :project IN ('', project)
ORDER BY created_at DESC, place DESC LIMIT :limit;

-- name: agents_retired
SELECT * FROM agents WHERE retired_at IS NOT NULL AND created_at < :before AND :project IN ('', project)
ORDER BY created_at DESC, place DESC LIMIT :limit;

-- name: agents_over
SELECT * FROM agents WHERE retired_at IS NULL
    AND (SELECT state FROM tasks WHERE agent = agents.id AND agent <> '' ORDER BY place DESC LIMIT 1)
        IN ('done', 'cancelled')
    AND NOT EXISTS (SELECT 1 FROM runs WHERE agent = agents.id AND outcome IS NULL)
ORDER BY created_at DESC, place DESC LIMIT :limit;

-- name: agents_named
SELECT * FROM agents INDEXED BY agents_by_name
WHERE name IN (SELECT value FROM json_each(:names)) AND :project IN ('', project)
ORDER BY created_at DESC, place DESC;

-- name: ready_tasks
SELECT * FROM tasks WHERE state = 'open' AND unmet = 0 ORDER BY place LIMIT :limit;

-- name: unfinished_tasks
SELECT * FROM tasks WHERE state IN ('open', 'active', 'waiting', 'landing') AND :project IN ('', project)
ORDER BY place;

-- name: unfinished_tasks_of
SELECT * FROM tasks INDEXED BY tasks_by_agent
WHERE agent = :agent AND agent <> '' AND state IN ('open', 'active', 'waiting', 'landing')
    AND :project IN ('', project)
ORDER BY place;

-- name: task_of
SELECT * FROM tasks WHERE agent = :agent AND agent <> '' ORDER BY place DESC LIMIT 1;

-- name: live_runs
SELECT * FROM runs WHERE outcome IS NULL
    AND (:project = '' OR EXISTS (SELECT 1 FROM agents WHERE id = runs.agent AND project = :project))
ORDER BY place;

-- name: live_by_project
SELECT agents.project, count(*) AS live FROM runs JOIN agents ON agents.id = runs.agent
WHERE runs.outcome IS NULL GROUP BY agents.project;

-- name: runs_of
SELECT * FROM runs WHERE agent = :agent ORDER BY number, place;

-- name: latest_runs
SELECT runs.* FROM json_each(:agents) AS asked JOIN runs ON runs.place = (
    SELECT place FROM runs WHERE agent = asked.value ORDER BY number DESC, place DESC LIMIT 1
);

-- name: costs
SELECT asked.value, sum(json_extract(usage, '$.cost_usd')) AS dollars, sum(
    json_extract(usage, '$.cost_usd') = 0 AND (
        json_extract(usage, '$.input_tokens') OR json_extract(usage, '$.output_tokens')
        OR ifnull(json_extract(usage, '$.calls'), 0)
    )
) AS unpriced
FROM (SELECT DISTINCT value FROM json_each(:agents)) AS asked JOIN runs ON runs.agent = asked.value
GROUP BY asked.value;

-- name: changes_queue
SELECT * FROM changes WHERE state NOT IN ('landed', 'closed') AND :project IN ('', project)
ORDER BY place LIMIT :limit;

-- name: changes_ended
SELECT * FROM changes WHERE state IN ('landed', 'closed') AND :project IN ('', project)
ORDER BY place DESC LIMIT :limit;

-- name: changes_of_task
SELECT * FROM changes WHERE task = :task AND task <> '' ORDER BY place;

-- name: messages
SELECT * FROM messages WHERE channel = :channel AND place > :after ORDER BY place LIMIT :limit;

-- name: undoing
SELECT * FROM changes WHERE undoes = :change AND undoes <> '' AND state NOT IN ('rejected', 'closed')
ORDER BY place DESC LIMIT 1;

-- name: readers_waiting
SELECT DISTINCT reader FROM deliveries INDEXED BY deliveries_waking
WHERE receipt IN ('pending', 'delivered') AND wakes AND reader NOT IN ('human', 'system') ORDER BY reader;

-- name: answer_to
SELECT * FROM messages WHERE kind = 'answer' AND reply_to = :question ORDER BY place LIMIT 1;

-- name: undelivered_to
SELECT * FROM deliveries INDEXED BY deliveries_owed WHERE receipt IN ('pending', 'delivered') AND reader = :reader
    AND reader NOT IN ('human', 'system')
ORDER BY sent, place LIMIT :limit;

-- name: undelivered
SELECT * FROM deliveries WHERE receipt IN ('pending', 'delivered') AND reader NOT IN ('human', 'system')
ORDER BY sent, place LIMIT :limit;

-- name: instances
SELECT * FROM instances WHERE :project IN ('', project) ORDER BY place;

-- name: instances_live
SELECT * FROM instances WHERE ended_at IS NULL AND :project IN ('', project) ORDER BY place;

-- name: documents
SELECT * FROM documents WHERE id >= :first AND id < :end AND +project = :project ORDER BY place;

-- name: revisions
SELECT * FROM events WHERE kind = 'document.written' AND subject = :document ORDER BY seq;

-- name: position
SELECT value FROM positions WHERE key = :key;

-- name: set_position
INSERT INTO positions VALUES (:key, :value) ON CONFLICT (key) DO UPDATE SET value = excluded.value;

-- name: said_newest
SELECT * FROM messages WHERE project = :project AND place > :after ORDER BY place DESC LIMIT :limit;

-- name: said_in_newest
SELECT * FROM messages WHERE project = :project AND channel = :channel AND place > :after
ORDER BY place DESC LIMIT :limit;

-- name: said_to_newest
SELECT messages.* FROM deliveries INDEXED BY deliveries_by_reader CROSS JOIN messages ON messages.place = sent
WHERE reader = :to AND sent > :after AND project = :project AND :channel IN ('', channel)
    AND (:viewer = '' OR (NOT direct AND channel = :home) OR sender = :viewer
        OR EXISTS (SELECT 1 FROM deliveries AS own WHERE own.id = messages.id || '/' || :viewer))
ORDER BY sent DESC LIMIT :limit;

-- name: seen_newest
WITH seen (place) AS (
    SELECT place FROM (
        SELECT place FROM messages INDEXED BY messages_open
        WHERE project = :project AND channel = :home AND NOT direct AND :channel IN ('', :home) AND place > :after
        ORDER BY place DESC LIMIT :limit
    )
    UNION SELECT place FROM (
        SELECT place FROM messages INDEXED BY messages_by_sender
        WHERE sender = :viewer AND project = :project AND :channel IN ('', channel) AND place > :after
        ORDER BY place DESC LIMIT :limit
    )
    UNION SELECT place FROM (
        SELECT messages.place FROM deliveries INDEXED BY deliveries_by_reader CROSS JOIN messages ON messages.place = sent
        WHERE reader = :viewer AND sent > :after AND project = :project AND :channel IN ('', channel)
        ORDER BY sent DESC LIMIT :limit
    )
)
SELECT messages.* FROM seen CROSS JOIN messages ON messages.place = seen.place ORDER BY seen.place DESC LIMIT :limit;

-- name: said_oldest
SELECT * FROM messages WHERE project = :project AND place > :after ORDER BY place LIMIT :limit;

-- name: said_in_oldest
SELECT * FROM messages WHERE project = :project AND channel = :channel AND place > :after
ORDER BY place LIMIT :limit;

-- name: said_to_oldest
SELECT messages.* FROM deliveries INDEXED BY deliveries_by_reader CROSS JOIN messages ON messages.place = sent
WHERE reader = :to AND sent > :after AND project = :project AND :channel IN ('', channel)
    AND (:viewer = '' OR (NOT direct AND channel = :home) OR sender = :viewer
        OR EXISTS (SELECT 1 FROM deliveries AS own WHERE own.id = messages.id || '/' || :viewer))
ORDER BY sent LIMIT :limit;

-- name: seen_oldest
WITH seen (place) AS (
    SELECT place FROM (
        SELECT place FROM messages INDEXED BY messages_open
        WHERE project = :project AND channel = :home AND NOT direct AND :channel IN ('', :home) AND place > :after
        ORDER BY place LIMIT :limit
    )
    UNION SELECT place FROM (
        SELECT place FROM messages INDEXED BY messages_by_sender
        WHERE sender = :viewer AND project = :project AND :channel IN ('', channel) AND place > :after
        ORDER BY place LIMIT :limit
    )
    UNION SELECT place FROM (
        SELECT messages.place FROM deliveries INDEXED BY deliveries_by_reader CROSS JOIN messages ON messages.place = sent
        WHERE reader = :viewer AND sent > :after AND project = :project AND :channel IN ('', channel)
        ORDER BY sent LIMIT :limit
    )
)
SELECT messages.* FROM seen CROSS JOIN messages ON messages.place = seen.place ORDER BY seen.place LIMIT :limit;

-- name: keyed
SELECT * FROM messages WHERE sender = :sender AND "key" = :key AND "key" <> '';

-- name: deliveries_unacked
SELECT * FROM deliveries INDEXED BY deliveries_unacked
WHERE reader = :reader AND receipt <> 'acked' AND sent > :after ORDER BY sent LIMIT :limit;

-- name: deliveries_to
SELECT * FROM deliveries WHERE reader = :reader AND sent > :after ORDER BY sent LIMIT :limit;

-- name: receipts
SELECT * FROM deliveries WHERE message = :message ORDER BY place;

-- name: asks_to
SELECT messages.* FROM deliveries CROSS JOIN messages ON messages.id = deliveries.message
WHERE reader = :reader AND kind = 'ask'
    AND NOT EXISTS (SELECT 1 FROM messages AS given WHERE given.kind = 'answer' AND given.reply_to = messages.id)
ORDER BY deliveries.sent LIMIT :limit;

-- name: asking
SELECT question.* FROM runs CROSS JOIN messages AS question INDEXED BY messages_asked_by
WHERE runs.outcome IS NULL AND question.kind = 'ask' AND sender = agent AND sent_at >= starting_at
    AND NOT EXISTS (SELECT 1 FROM json_each(question."to") WHERE value = 'human')
    AND NOT EXISTS (SELECT 1 FROM messages AS given WHERE given.kind = 'answer' AND given.reply_to = question.id)
ORDER BY question.place;

-- name: longest_way
WITH own (agent, began, bound) AS (
    SELECT agent, starting_at, coalesce((
        SELECT sent FROM deliveries INDEXED BY deliveries_by_reader
        WHERE reader = agent ORDER BY sent DESC LIMIT 1 OFFSET :most
    ), 0) FROM runs WHERE id = :run
), heard (place) AS (
    SELECT sent FROM (SELECT sent FROM deliveries WHERE run = :run AND run <> '' ORDER BY sent DESC LIMIT :most)
    UNION ALL
    SELECT sent FROM own CROSS JOIN deliveries INDEXED BY deliveries_by_reader ON reader = agent
    WHERE sent > coalesce((
        SELECT older.sent FROM deliveries AS older INDEXED BY deliveries_by_reader
            CROSS JOIN messages ON messages.place = older.sent
        WHERE older.reader = own.agent AND older.sent > bound AND sent_at < began ORDER BY older.sent DESC LIMIT 1
    ), bound)
    UNION ALL
    SELECT place FROM messages WHERE id = :answered
)
SELECT messages.* FROM heard CROSS JOIN messages ON messages.place = heard.place
WHERE heard.place > coalesce((
    SELECT max(said.place) FROM heard CROSS JOIN messages AS said ON said.place = heard.place
    WHERE said.sender = 'human'
), 0)
ORDER BY hops DESC, heard.place LIMIT 1;

-- name: wrote_to
SELECT value AS sender FROM json_each(:senders) AS asked
WHERE EXISTS (
    SELECT 1 FROM deliveries INDEXED BY deliveries_by_reader CROSS JOIN messages ON messages.place = sent
    WHERE reader = :reader AND sent > :after AND messages.sender = asked.value
);

-- name: deliveries_of
SELECT * FROM deliveries WHERE run = :run AND run <> '' ORDER BY sent, place;

-- name: open_asks
SELECT * FROM messages AS question
WHERE kind = 'ask' AND EXISTS (SELECT 1 FROM json_each(question."to") WHERE value = 'human')
    AND NOT EXISTS (SELECT 1 FROM messages WHERE kind = 'answer' AND reply_to = question.id)
ORDER BY place LIMIT :limit;

-- name: open_asks_in
SELECT * FROM messages AS question INDEXED BY messages_by_channel
WHERE channel = :channel AND kind = 'ask' AND :sender IN ('', sender)
    AND EXISTS (SELECT 1 FROM json_each(question."to") WHERE value = 'human')
    AND NOT EXISTS (SELECT 1 FROM messages WHERE kind = 'answer' AND reply_to = question.id)
ORDER BY place LIMIT :limit;

-- name: open_asks_of
SELECT * FROM messages AS question INDEXED BY messages_asked_by
WHERE kind = 'ask' AND sender = :sender AND EXISTS (SELECT 1 FROM json_each(question."to") WHERE value = 'human')
    AND NOT EXISTS (SELECT 1 FROM messages WHERE kind = 'answer' AND reply_to = question.id)
ORDER BY place LIMIT :limit;

-- name: events
SELECT * FROM events WHERE seq > :after ORDER BY seq LIMIT :limit;

-- name: last_seq
SELECT coalesce(max(seq), 0) FROM events;

-- name: output_end
SELECT "offset" + length FROM chunks WHERE run = :run ORDER BY "offset" DESC LIMIT 1;

-- name: chunks
SELECT run, "offset", at, content, form, length FROM chunks
WHERE run = :run AND "offset" + length > :offset
    AND "offset" >= coalesce((SELECT max("offset") FROM chunks WHERE run = :run AND "offset" <= :offset), 0)
ORDER BY "offset" LIMIT :limit;

-- name: unpacked_runs
SELECT * FROM runs WHERE id IN (SELECT DISTINCT run FROM chunks WHERE form = '') AND ended_at < :before
ORDER BY ended_at LIMIT :limit;

-- name: unpacked
SELECT run, "offset", at, content, form, length FROM chunks WHERE run = :run AND form = ''
ORDER BY "offset" LIMIT :limit;

-- name: output_size
SELECT coalesce(sum(length), 0), coalesce(sum(length(content)), 0) FROM chunks;

-- name: pack
UPDATE chunks SET form = :form, content = :content WHERE run = :run AND "offset" = :offset AND form = '';

-- name: last_output
SELECT chunks.run, chunks.at FROM json_each(:runs) AS asked JOIN chunks ON chunks.place = (
    SELECT place FROM chunks WHERE run = asked.value ORDER BY "offset" DESC LIMIT 1
);

-- name: count_up
INSERT INTO counters VALUES (:kind, 1) ON CONFLICT (kind) DO UPDATE SET last = last + 1;

-- name: counted
SELECT last FROM counters WHERE kind = :kind;

-- name: add_event
INSERT INTO events VALUES (:seq, :time, :kind, :subject, :payload, :digest, :chain);

-- name: add_chunk
INSERT INTO chunks (run, "offset", length, at, content) VALUES (:run, :offset, :length, :at, :content);

-- name: tip
SELECT seq, chain FROM tip;

-- name: move_tip
UPDATE tip SET seq = :seq, chain = :chain;

-- name: home_id
SELECT value FROM meta WHERE key = 'home';
