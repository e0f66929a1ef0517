-- What is strange about a run's output, and where its file begins.

ALTER TABLE runs ADD COLUMN odd TEXT NOT NULL DEFAULT '[]';
ALTER TABLE runs ADD COLUMN cut INTEGER NOT NULL DEFAULT 0;
