"""Which agents are about to collide."""
