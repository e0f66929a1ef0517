"""An agent without a coding CLI: a process of ours that asks a model and does what it wants done.

It is a program like any other that a provider starts: its prompt comes on standard input, and what happens goes to
standard output, one JSON object a line (`report_lines.py`). It needs the extra `windlass-agents[models]`.
"""
