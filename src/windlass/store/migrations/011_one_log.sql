-- Everyone speaks in one log: whose channel a message stands in, who may see it, what led to it, and who is woken by it.
ALTER TABLE messages ADD COLUMN project TEXT NOT NULL DEFAULT '';
ALTER TABLE messages ADD COLUMN direct INTEGER NOT NULL DEFAULT 0;
ALTER TABLE messages ADD COLUMN broadcast INTEGER NOT NULL DEFAULT 0;
ALTER TABLE messages ADD COLUMN "key" TEXT NOT NULL DEFAULT '';
ALTER TABLE messages ADD COLUMN claims TEXT NOT NULL DEFAULT '';
ALTER TABLE messages ADD COLUMN hops INTEGER NOT NULL DEFAULT 0;
ALTER TABLE messages ADD COLUMN chain TEXT NOT NULL DEFAULT '[]';
ALTER TABLE deliveries ADD COLUMN wakes INTEGER NOT NULL DEFAULT 1;
ALTER TABLE deliveries ADD COLUMN reason TEXT NOT NULL DEFAULT '';
UPDATE messages SET project = coalesce(
    (SELECT project FROM tasks WHERE 'task/' || tasks.id = messages.channel),
    (SELECT project FROM changes WHERE 'change/' || changes.id = messages.channel),
    ''
);
CREATE UNIQUE INDEX messages_by_key ON messages (sender, "key") WHERE "key" <> '';
CREATE INDEX messages_by_project ON messages (project, place);
CREATE INDEX messages_in_channel ON messages (project, channel, place);
CREATE INDEX deliveries_unacked ON deliveries (reader, sent) WHERE receipt <> 'acked';
CREATE INDEX deliveries_by_reader ON deliveries (reader, sent);
CREATE INDEX deliveries_by_message ON deliveries (message);
CREATE INDEX events_of_documents ON events (subject, seq) WHERE kind = 'document.written';
CREATE INDEX documents_by_project ON documents (project);
CREATE INDEX deliveries_owed ON deliveries (reader, sent) WHERE receipt IN ('pending', 'delivered');
CREATE INDEX deliveries_waking ON deliveries (reader) WHERE receipt IN ('pending', 'delivered') AND wakes;
