-- What a task wants of its agent: its prompt is made for that.

ALTER TABLE tasks ADD COLUMN wants TEXT NOT NULL DEFAULT 'execute';

-- Who asks is asked about: whoever waits for an answer leaves its slot to the one who gives it.

CREATE INDEX messages_asked_by ON messages (sender, place) WHERE kind = 'ask';
