-- The output of a run that has ended is packed, chunk by chunk. '' is as it came, 'zlib' packed, 'whole' looked at and left
-- as it is, because packing would not make it smaller. The length is that of the output.
ALTER TABLE chunks ADD COLUMN form TEXT NOT NULL DEFAULT '';

CREATE INDEX chunks_unpacked ON chunks (run, "offset") WHERE form = '';
