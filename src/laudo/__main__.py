"""Entry point of `laudo` and `python -m laudo`, which Ctrl-C ends quietly even while modules are loading."""

import sys


def main() -> None:
    try:
        from laudo import cli  # noqa: PLC0415 - loading takes time, in which Ctrl-C may come
    except KeyboardInterrupt:
        sys.exit(130)
    cli.main()


if __name__ == "__main__":
    main()
