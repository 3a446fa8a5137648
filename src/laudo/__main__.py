"""Entry point of `laudo` and `python -m laudo`, which Ctrl-C ends quietly even while modules are loading."""

import signal
import sys


def main() -> None:
    try:
        from laudo import cli  # noqa: PLC0415 - loading takes time, in which Ctrl-C may come
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.raise_signal(signal.SIGINT)  # From a mere exit code, a script's loop would go on.
        sys.exit(130)  # The signal does not end the first process of a container.
    cli.main()


if __name__ == "__main__":
    main()
