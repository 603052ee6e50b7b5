"""The overall state of an answer. Its exit code and the mark before its headline depend on it."""

from __future__ import annotations

from typing import Literal

Standing = Literal["fine", "answered", "attention", "wrong", "unknown"]
"""`fine`: everything that the answer needs was checked, and nothing is wrong.
`answered`: the question was answered, and it was not a question of right or wrong.
`attention`: it works, but something was found. `wrong`: it does not work.
`unknown`: something that the answer needs could not be checked."""

EXIT_FINE = 0
EXIT_FOUND = 1
EXIT_UNDETERMINED = 4

EXIT_CODES: dict[Standing, int] = {
    "fine": EXIT_FINE,
    "answered": EXIT_FINE,
    "attention": EXIT_FOUND,
    "wrong": EXIT_FOUND,
    "unknown": EXIT_UNDETERMINED,
}
