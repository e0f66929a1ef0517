"""chat.md, channel.md and notes.md."""
