-- What a task wants of its agent: its prompt is made for that.
ALTER TABLE tasks ADD COLUMN wants TEXT NOT NULL DEFAULT 'execute';

-- What a question was put to: whoever is at a task, or at a phase.
ALTER TABLE messages ADD COLUMN about TEXT NOT NULL DEFAULT '';

-- Whoever waits for an answer leaves its slot to the one who gives it; and what one may see is found without looking at the rest.
CREATE INDEX messages_asked_by ON messages (sender, sent_at) WHERE kind = 'ask';
CREATE INDEX messages_by_sender ON messages (sender, place);
CREATE INDEX messages_open ON messages (project, channel, place) WHERE NOT direct;
