-- The order of the queue: by event, not by a clock that may jump.

ALTER TABLE changes ADD COLUMN turn INTEGER NOT NULL DEFAULT 0;
