"""The only place that reads the bytes of an import: it makes lines of them, gzip or not, in bounded memory."""

import os
import stat
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final

LONGEST: Final = 65_536
"""Bytes that a line may have, its line feed not counted."""

TOO_LONG: Final = f"longer than {LONGEST // 1024} KiB"


@dataclass(frozen=True, slots=True)
class Unread:
    """What stands in the place of a line that cannot be given: why, and how many quotes went with it."""

    reason: str
    quotes: int = 0
    final: bool = False
    """Nothing can be read after it."""


Line = bytes | Unread


class NotGzipError(Exception):
    """A stream is called `.gz` and does not begin as gzip does."""


class Source:
    """One stream of bytes, read once, that tells how far it has been read.

    `consumed` counts the bytes taken from the stream, compressed ones if it is gzip; `size` is how many it has in
    all, None when nobody can know (a pipe). `name` only helps to recognize gzip and the format.
    """

    __slots__ = ("_stream", "consumed", "name", "size")

    def __init__(self, stream: BinaryIO, name: str = "") -> None:
        self._stream = stream
        self.name = name
        self.consumed = 0
        self.size = _size(stream)

    def lines(self) -> Iterator[Line]:
        """Give every line without its line feed, and an `Unread` for each that is too long.

        A gzip stream that ends early or is damaged ends with an `Unread` that is `final`: it stands for the line
        that was being read, whose beginning is not given. Raises NotGzipError, and OSError as the stream does.
        """
        tail, quotes, overlong = b"", 0, False
        try:
            for chunk in self._chunks():
                first, *rest = chunk.split(b"\n")
                tail += first
                if overlong or len(tail) > LONGEST:
                    quotes, overlong, tail = quotes + tail.count(b'"'), True, b""
                if rest:
                    yield Unread(TOO_LONG, quotes) if overlong else tail
                    tail, quotes, overlong = rest.pop(), 0, False
                    yield from rest
        except _DamageError as damage:
            yield Unread(str(damage), final=True)
            return
        if overlong:
            yield Unread(TOO_LONG, quotes)
        elif tail:
            yield tail

    def _chunks(self) -> Iterator[bytes]:
        """Give the bytes as they are after decompression, at most LONGEST at once."""
        first = self._read()
        if len(first) == 1:
            first += self._read()
        if first.startswith(_GZIP):
            yield from self._inflated(first)
        elif first and self.name.lower().endswith(".gz"):
            raise NotGzipError
        else:
            yield from self._plain(first)

    def _plain(self, first: bytes) -> Iterator[bytes]:
        chunk = first
        while chunk:
            yield chunk
            chunk = self._read()

    def _inflated(self, compressed: bytes) -> Iterator[bytes]:
        """Give what each gzip member holds, one after the other; zeros between and after them are padding."""
        while compressed:
            member = zlib.decompressobj(_GZIP_FORMAT)
            yield from self._member(member, compressed)
            compressed = member.unused_data.lstrip(b"\0")
            while not compressed and (more := self._read()):
                compressed = more.lstrip(b"\0")

    def _member(self, member: "zlib._Decompress", compressed: bytes) -> Iterator[bytes]:
        while not member.eof:
            try:
                chunk = member.decompress(compressed, LONGEST)
            except zlib.error:
                raise _DamageError(_CORRUPT) from None
            if chunk:
                yield chunk
            compressed = member.unconsumed_tail
            # A full chunk may leave more inside the decompressor; anything less has used up what it was given.
            if not compressed and len(chunk) < LONGEST and not member.eof:
                compressed = self._read()
                if not compressed:
                    raise _DamageError(_TRUNCATED)

    def _read(self) -> bytes:
        block = self._stream.read(LONGEST)
        self.consumed += len(block)
        return block


class _DamageError(Exception):
    """A gzip stream cannot be read any further."""


def _size(stream: BinaryIO) -> int | None:
    try:
        status = os.fstat(stream.fileno())
    except (OSError, AttributeError):
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


_TRUNCATED: Final = "truncated gzip: the file ends before its data; nothing from this line on was read"
_CORRUPT: Final = "corrupt gzip: the data are damaged; nothing from this line on was read"
_GZIP: Final = b"\x1f\x8b"
_GZIP_FORMAT: Final = 16 + zlib.MAX_WBITS
