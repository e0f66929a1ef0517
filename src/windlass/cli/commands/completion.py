"""Completion: the script that lets a shell complete commands, agents and changes."""

from __future__ import annotations

import click

from windlass.cli.arguments import command
from windlass.cli.main import COMPLETE_VARIABLE, windlass
from windlass.cli.output import say

_SHORT_NAME = {
    "bash": "complete -o nosort -F _windlass_completion wl\n"
    'COMP_WORDBREAKS="${COMP_WORDBREAKS//@/}"',  # else coder@pr-7 were three words
    "zsh": "(( $+functions[compdef] )) && compdef _windlass_completion wl",
    "fish": 'complete --no-files --command wl --arguments "(_windlass_completion)"',
}
"""How each shell learns that `wl` is completed like `windlass`."""


@command(
    "completion",
    """
    echo 'eval "$(windlass completion bash)"' >> ~/.bashrc
    echo 'eval "$(windlass completion zsh)"' >> ~/.zshrc
    windlass completion fish > ~/.config/fish/completions/windlass.fish
    """,
)
@click.argument("shell", type=click.Choice(list(_SHORT_NAME)))
def completion_command(shell: str) -> None:
    """Print the script that lets your shell complete commands, options and names."""
    from click.shell_completion import get_completion_class  # noqa: PLC0415

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"Completion for {shell} is not there.")
    say(kind(windlass, {}, "windlass", COMPLETE_VARIABLE).source().rstrip())
    say(_SHORT_NAME[shell])
