-- A person may forget a project: it is not shown any more, and its hub stays until they say so.
ALTER TABLE projects ADD COLUMN forgotten_at REAL;
ALTER TABLE projects ADD COLUMN hub_deleted_at REAL;
