-- Who goes first in the line, what a person let pass, and whether the line moves at all.

ALTER TABLE changes ADD COLUMN rank INTEGER NOT NULL DEFAULT 0;
ALTER TABLE changes ADD COLUMN allowed TEXT NOT NULL DEFAULT '';

ALTER TABLE projects ADD COLUMN paused_at REAL;
ALTER TABLE projects ADD COLUMN pause TEXT NOT NULL DEFAULT '';
ALTER TABLE projects ADD COLUMN health TEXT;
