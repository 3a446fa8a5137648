"""Guesses whether a store that shows its state only to a query is unchanged, so that a query for it alone pays off."""

from laudo.server.database import Mark


class Forecast:
    """The last state of the store that a worker has seen, as a guess of the next; a wrong guess costs a round trip.

    There is no guess until the store has been found unchanged: while others write, each one would be wrong.
    """

    def __init__(self) -> None:
        self._last: Mark = None
        self._is_stable = False

    def expects(self, mark: Mark) -> bool:
        """Tell whether the store is likely to be in this state."""
        return self._is_stable and mark == self._last

    def learn(self, mark: Mark) -> None:
        """Note the state that a request found without a guess; None if the store could not tell it."""
        self._is_stable = mark is not None and mark == self._last
        self._last = mark

    def confirms(self, expected: Mark, mark: Mark) -> bool:
        """Tell whether a request found the state that it expected; after a wrong guess nothing is expected."""
        if mark != expected:
            self.learn(None)
        return mark == expected
