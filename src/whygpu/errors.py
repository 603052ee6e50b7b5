"""Errors that the user can correct, and the exit codes of those and of bugs in whygpu."""

TYPE_CHECKING = False  # importing typing for it would cost `whygpu --help` a tenth of its time
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

EXIT_USAGE = 2
EXIT_BUG = 3
EXIT_RUN_FAILED = 125
"""Of both under `whygpu run`, where 2 and 3 would be the program's own exit codes."""


def exit_code_of_usage(words: "Sequence[str]") -> int:
    """The exit code of wrong usage, for the words of a command line."""
    return EXIT_RUN_FAILED if list(words[:1]) == ["run"] else EXIT_USAGE


def exit_code_of_bug(words: "Sequence[str]") -> int:
    """The exit code of a bug: never 1, which means that something was found."""
    return EXIT_RUN_FAILED if list(words[:1]) == ["run"] else EXIT_BUG


class Option:
    """One option of a verb, by the name of the argument that the function in `api` has for it.

    The command line writes it as `--memory 4GiB`, Python as `memory='4GiB'`.
    """

    def __init__(self, name: str, value: object = None) -> None:
        self.name = name
        self.value = value

    def __repr__(self) -> str:
        return f"{self.name}=..." if self.value is None else f"{self.name}={self.value!r}"


class UserError(Exception):
    """What is wrong and what to do about it, in texts, options and values that str() writes.

    `option` is the option that is wrong and `value` what it was given: the message begins with
    them. str() writes options as Python's arguments; the command line writes them its own way.
    """

    def __init__(self, *problem: object, option: str = "", value: object = None) -> None:
        super().__init__(*problem)
        self.option = Option(option, value) if option else None

    def __str__(self) -> str:
        return self.written(repr)

    @property
    def problem(self) -> str:
        """The message without the option that it is about."""
        return "".join(map(str, self.args))

    def written(self, write_option: "Callable[[Option], str]") -> str:
        """The message, with each option as this function writes it."""
        problem = "".join(
            write_option(part) if isinstance(part, Option) else str(part) for part in self.args
        )
        return problem if self.option is None else f"{write_option(self.option)}: {problem}"


class UsageError(UserError):
    """Wrong usage or unreadable input. The message says what to do about it."""


class PolicyError(UserError):
    """A device policy that this machine cannot meet. The message says why, and what there is.

    `summary` is the reason in one line, for the rows of a table.
    """

    def __init__(
        self, *problem: object, summary: str = "", option: str = "", value: object = None
    ) -> None:
        super().__init__(*problem, option=option, value=value)
        self.summary = summary or self.problem
