"""The demo: five scripted agents on a throw-away repository."""
