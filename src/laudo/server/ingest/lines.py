"""The only place that reads the bytes of an import: splits them into lines, gzip or not, in bounded memory."""

import os
import select
import stat
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from time import monotonic
from typing import Final, Protocol, Self

LONGEST: Final = 65_536
"""Bytes that a line may have, without its line feed."""

LONG: Final = 1 << 20
"""Bytes of a source above which a second process reads it: some thousand reports, or more if it is gzip."""

TOO_LONG: Final = f"longer than {LONGEST // 1024} KiB"

WAIT: Final = 1.0
"""Seconds that bytes from a stream may wait for more to come."""


@dataclass(frozen=True, slots=True)
class Unread:
    """Stands in place of a line that cannot be given: the reason, and how many quotes the line has."""

    reason: str
    quotes: int = 0
    final: bool = False
    """Nothing can be read after it."""
    beginning: bytes = field(default=b"", repr=False)
    """The beginning of a line that is too long, which shows the format of the file."""


Line = bytes | Unread


class Stream(Protocol):
    """A stream that is read as data comes; one whose `fileno` is not a regular file may have to be waited for."""

    def read1(self, size: int = -1, /) -> bytes: ...


class NotGzipError(Exception):
    """The name of a stream ends in `.gz`, but the stream does not begin as gzip does."""


class Source:
    """One stream of bytes, read once, that tells how far it has been read.

    `consumed` counts the bytes taken from the stream, compressed ones if it is gzip; `size` is how many it has in
    all, None if that is unknown (a pipe). `name` only helps to recognize gzip and the format.
    """

    __slots__ = ("_stream", "consumed", "name", "size")

    def __init__(self, stream: Stream, name: str = "") -> None:
        self._stream = stream
        self.name = name
        self.consumed = 0
        self.size = _size(stream)

    @property
    def is_long(self) -> bool:
        """Whether there is much to read, or may be, as from a pipe."""
        return self.size > LONG if self.size is not None else _descriptor(self._stream) is not None

    def lines(self) -> Iterator[tuple[int, Line] | None]:
        """Give every line with its number, without its line feed, and an `Unread` for each that is too long.

        None says that data has waited for WAIT seconds, and that no more has come. A gzip stream that ends
        early or is damaged ends with an `Unread` that is `final`, in place of the line that was being read. Raises
        NotGzipError, and OSError as the stream does.
        """
        number, tail, quotes, beginning = 1, b"", 0, b""
        try:
            for chunk in self._chunks():
                if not chunk:
                    yield None
                    continue
                first, *rest = chunk.split(b"\n")
                tail += first
                if beginning or len(tail) > LONGEST:
                    quotes, beginning, tail = quotes + tail.count(b'"'), beginning or tail[:_BEGINNING_LENGTH], b""
                if rest:
                    yield number, Unread(TOO_LONG, quotes, beginning=beginning) if beginning else tail
                    tail, quotes, beginning = rest.pop(), 0, b""
                    yield from enumerate(rest, number + 1)
                    number += 1 + len(rest)
        except _DamageError as damage:
            yield number, Unread(str(damage), final=True)
            return
        if beginning:
            yield number, Unread(TOO_LONG, quotes, beginning=beginning)
        elif tail:
            yield number, tail

    def _chunks(self) -> Iterator[bytes]:
        """Give the decompressed bytes, at most LONGEST at once; empty ones stand for a long wait."""
        blocks = self._blocks()
        first = next(blocks, b"")
        while len(first) == 1 and (more := next(blocks, None)) is not None:
            first += more
        if first.startswith(_GZIP):
            yield from _inflated(first, blocks)
        elif first and self.name.lower().endswith(".gz"):
            raise NotGzipError
        elif first:
            yield first
            yield from blocks

    def _blocks(self) -> Iterator[bytes]:
        """Give the bytes as they come, and empty ones when earlier bytes have waited long enough."""
        poller = None if self.size is not None else _Poller.on(self._stream)
        while True:
            while poller and not poller.wait():
                yield b""
            block = self._read()
            if not block:
                return
            self.consumed += len(block)
            yield block

    def _read(self) -> bytes:
        """Read what has come; an error names the file, since the store may be on another disk."""
        try:
            return self._stream.read1(LONGEST)
        except OSError as error:
            error.filename = error.filename or self.name or None
            raise


class _Poller:
    """Waits for data on a descriptor: at first for ever, and once some has come, for WAIT seconds from then on."""

    def __init__(self, descriptor: int) -> None:
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLIN)
        self._deadline: float | None = None

    @classmethod
    def on(cls, stream: Stream) -> Self | None:
        """Give None for a stream without a descriptor, which never has to be waited for."""
        descriptor = _descriptor(stream)
        return None if descriptor is None else cls(descriptor)

    def wait(self) -> bool:
        """Wait; tells whether data has come, or the stream has ended."""
        timeout = None if self._deadline is None else 1000 * max(0.0, self._deadline - monotonic())
        if not self._poll.poll(timeout):
            self._deadline = None
            return False
        if self._deadline is None:
            self._deadline = monotonic() + WAIT
        return True


def _inflated(compressed: bytes, blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Give what each gzip member holds, one after the other; zeros between and after them are padding."""
    while compressed:
        member = zlib.decompressobj(_GZIP_FORMAT)
        yield from _member(member, compressed, blocks)
        compressed = member.unused_data.lstrip(b"\0")
        while not compressed and (more := next(blocks, None)) is not None:
            compressed = more.lstrip(b"\0")
            if not more:
                yield more


def _member(member: "zlib._Decompress", compressed: bytes, blocks: Iterator[bytes]) -> Iterator[bytes]:
    while not member.eof:
        try:
            chunk = member.decompress(compressed, LONGEST)
        except zlib.error:
            raise _DamageError(_CORRUPT) from None
        if chunk:
            yield chunk
        compressed = member.unconsumed_tail
        # A full chunk may leave more inside the decompressor; anything less has used up what it was given.
        while not compressed and len(chunk) < LONGEST and not member.eof:
            more = next(blocks, None)
            if more is None:
                raise _DamageError(_TRUNCATED)
            compressed = more
            if not more:
                yield more


class _DamageError(Exception):
    """A gzip stream cannot be read any further."""


def _size(stream: Stream) -> int | None:
    descriptor = _descriptor(stream)
    if descriptor is None:
        return None
    status = os.fstat(descriptor)
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _descriptor(stream: Stream) -> int | None:
    try:
        return int(stream.fileno())  # type: ignore[attr-defined]
    except (OSError, AttributeError):
        return None


_TRUNCATED: Final = "truncated gzip: the file ends too early; nothing from this line on was read"
_CORRUPT: Final = "corrupt gzip: the data is damaged; nothing from this line on was read"
_BEGINNING_LENGTH: Final = 64
_GZIP: Final = b"\x1f\x8b"
_GZIP_FORMAT: Final = 16 + zlib.MAX_WBITS
