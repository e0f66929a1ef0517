-- Who goes first in the line, and whether it moves at all.

ALTER TABLE changes ADD COLUMN rank INTEGER NOT NULL DEFAULT 0;

ALTER TABLE projects ADD COLUMN paused_at REAL;
ALTER TABLE projects ADD COLUMN pause TEXT NOT NULL DEFAULT '';
