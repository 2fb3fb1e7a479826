"""The command `completion`: what a shell needs to complete commands, options and names."""

from enum import StrEnum
from typing import Annotated

import typer
from typer.completion import get_completion_script  # type: ignore[attr-defined]

from waybill.cli import render

PROGRAM = "waybill"
VARIABLE = "_WAYBILL_COMPLETE"  # as the parser derives it from the program's name


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    shell: Annotated[Shell, typer.Argument(case_sensitive=False, help="the shell to set up")],
) -> None:
    """Print a script that lets a shell complete words.

    It completes commands, options, phases, and the names of pipelines, inputs, contexts and
    logs.

    \b
    Example:
      eval "$(waybill completion bash)"                                 # this shell
      waybill completion bash > ~/.local/share/bash-completion/completions/waybill
      waybill completion zsh  > ~/.zfunc/_waybill                       # fpath+=~/.zfunc; compinit
      waybill completion fish > ~/.config/fish/completions/waybill.fish

    Exit codes: 0 ok · 2 usage
    """
    script = get_completion_script(prog_name=PROGRAM, complete_var=VARIABLE, shell=shell.value)
    render.data(script.splitlines())
