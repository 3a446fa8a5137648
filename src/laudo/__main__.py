"""Where `laudo` and `python -m laudo` begin: Ctrl-C ends quietly also what is still being loaded."""

import sys


def main() -> None:
    try:
        from laudo import cli  # noqa: PLC0415 - what it loads is what takes time
    except KeyboardInterrupt:
        sys.exit(130)
    cli.main()


if __name__ == "__main__":
    main()
