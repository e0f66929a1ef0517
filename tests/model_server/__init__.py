"""A scripted model: real coding CLIs are pointed at it, and do what a script says. Nothing leaves the machine.

In a test:

    with ModelServer({"greet": [shell("echo hello > hello.txt"), say("It is written.")]}) as models:
        models.url("greet")                    # the base URL of the Anthropic API; add /v1 for the OpenAI one
        models.requests("greet")[0].asked.prompts

By hand, in the folder tests: `python -m model_server --script FILE.json` (its help shows the format).

- A scenario is a list of steps. It is chosen by the URL (`/s/NAME` before the API's own path) or, where the URL names
  none, by the word `scenario:NAME` in the first prompt that has one.
- A step is one turn of the model. It is chosen by the number of turns that are already in the request: a repeated
  request gets the same answer, and a resumed conversation goes on where it was.
- An API is one file with an `Api` in it, listed in server.py.
"""
