"""Tests that are coroutines: each runs in a loop of its own, `inside` what it needs there."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from functools import wraps
from inspect import signature
from typing import Any, Concatenate, ParamSpec, TypeVar

WAIT_S = 120.0
Made = TypeVar("Made")
Rest = ParamSpec("Rest")
Running = Coroutine[Any, Any, None]


def in_a_loop(test: Callable[Rest, Running]) -> Callable[Rest, None]:
    @wraps(test)
    def run(*args: Rest.args, **kwargs: Rest.kwargs) -> None:
        asyncio.run(asyncio.wait_for(test(*args, **kwargs), WAIT_S))

    return run


def inside(
    make: Callable[[], AbstractAsyncContextManager[Made]],
) -> Callable[[Callable[Concatenate[Made, Rest], Running]], Callable[Rest, None]]:
    """The first argument of the test is what `make` yields; pytest knows only the others."""

    def decorate(test: Callable[Concatenate[Made, Rest], Running]) -> Callable[Rest, None]:
        @wraps(test)
        async def play(*args: Rest.args, **kwargs: Rest.kwargs) -> None:
            async with make() as made:
                await test(made, *args, **kwargs)

        known = signature(test)
        others = [*known.parameters.values()][1:]
        play.__signature__ = known.replace(parameters=others)  # type: ignore[attr-defined]
        return in_a_loop(play)

    return decorate
