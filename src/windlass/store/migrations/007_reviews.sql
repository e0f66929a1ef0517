-- What a message says about a change, and the change that a task looks at.

ALTER TABLE messages ADD COLUMN remark TEXT NOT NULL DEFAULT 'null';

ALTER TABLE tasks ADD COLUMN reviews TEXT NOT NULL DEFAULT '';
