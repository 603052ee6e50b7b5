"""How an answer stands. The mark before its headline and its exit code are both read from this."""

from __future__ import annotations

from typing import Literal

Standing = Literal["fine", "answered", "attention", "wrong", "unknown"]
"""`fine`: everything that the answer needs was looked at, and nothing is wrong with it.
`answered`: the question was answered, and it was not one of right or wrong.
`attention`: it works, and something was found all the same. `wrong`: it does not work.
`unknown`: something that the answer needs could not be looked at."""

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
