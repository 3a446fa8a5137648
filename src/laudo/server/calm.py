"""Whether a store that must be asked for its state is likely to be as it was, so that this alone is worth asking."""

from laudo.server.database import Mark


class Calm:
    """What a worker was told last of a store's state: a guess, which costs a round trip when it is wrong.

    Nothing is expected until the store has been found unchanged: while others write, each guess would be wrong.
    """

    def __init__(self) -> None:
        """Expect nothing yet."""
        self._last: Mark = None
        self._has_stayed = False

    def expects(self, mark: Mark) -> bool:
        """Tell whether the store is likely to be in this state."""
        return self._has_stayed and mark == self._last

    def learn(self, mark: Mark) -> None:
        """Take note of the state that a request met without expecting any, None if the store could not tell."""
        self._has_stayed = mark is not None and mark == self._last
        self._last = mark

    def confirms(self, expected: Mark, mark: Mark) -> bool:
        """Tell whether a request met the state that it expected."""
        if mark != expected:
            self.learn(None)
        return mark == expected
