"""A file that grows beside its name until it is whole; the only place that writes exports, and knows how far one is."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from laudo.cli import answers, output
from laudo.cli.login import Access
from laudo.core.resources import Resource

if TYPE_CHECKING:
    from laudo.client import Batch, Place

Encode = Callable[[list[dict[str, Any]], list[str]], bytes]


class Part:
    """One export of what one token sees, by one process at a time.

    What `write` has returned from is there when the same export is run again.
    """

    def __init__(self, file: Path, resource: Resource, *, access: Access, question: Mapping[str, object]) -> None:
        """Raises Failure when the name has no known ending, or nothing else."""
        if file.name.lower() in FORMATS:
            raise output.Failure(
                f"{file} is an ending without a name; hint: {file.with_name(resource.name + file.name)}"
            )
        self._format = file.suffix.lower()
        if self._format not in FORMATS:
            raise output.Failure(f"{file} must end in {', '.join(FORMATS)}")
        if self._format == ".parquet":
            _pyarrow()
        self._file = file
        self._part = file.with_name(f"{file.name}.part")
        self._journal = file.with_name(f"{file.name}.part.json")
        self._names = [field.name for field in resource.fields]
        self._encode = FORMATS[self._format]
        self._question = {"list": resource.name, **access.named(), **question}
        self.items = 0
        self.place: Place | None = None
        self.done = False
        self._bytes = 0

    def write(self, batch: "Batch[Any]") -> None:
        """Add the items of a batch, and note where to go on."""
        self._append(self._encode([item.to_wire() for item in batch.itens], self._names))
        self._note(self.items + len(batch.itens), batch.place, done=batch.place is None)

    def finish(self) -> None:
        """Give the file its name."""
        if self._format == ".parquet":
            _to_parquet(self._part, self._file, self._names)
            self._part.unlink()
        else:
            os.fsync(self._stream.fileno())
            self._part.replace(self._file)
        self._journal.unlink(missing_ok=True)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Go on with what is there; when that cannot be ended, say what is kept and how to get the rest.

        Raises Failure when what is there is no file, written by another process, or of another question or token.
        """
        for path in (self._part, self._journal):
            if path.exists() and not path.is_file():
                raise output.Failure(f"{path} is no file; hint: remove it")
        with _held(self._part) as self._stream:
            self._resume()
            self._part.chmod(0o600)
            hint = f"the same command goes on, and begins anew without {self._part}"
            kept = output.resumable(lambda: f"{output.counted(self.items, 'item')}; hint: {hint}" if self.items else "")
            with kept, self._worth_it():
                if not self.items:
                    self._begin()
                yield

    @contextmanager
    def _worth_it(self) -> Iterator[None]:
        """Leave nothing where nothing came: what was asked for may hold a CPF, and the next question be another."""
        try:
            yield
        except BaseException:
            if not self.items:
                self._part.unlink(missing_ok=True)
                self._journal.unlink(missing_ok=True)
            raise

    def _resume(self) -> None:
        """Take what is noted for what there is, unless that is nothing, or has been taken away."""
        known, size = self._known(), os.fstat(self._stream.fileno()).st_size
        if known is None and size:
            raise output.Failure(
                f"{self._part} is not what `laudo export` wrote; hint: remove it, or name another file"
            )
        if known is None or not known.items or size < known.bytes:
            return
        if known.question != self._question:
            text = f"{self._journal} belongs to another question or token; hint: remove {self._part} to begin anew"
            raise output.Failure(text)
        self._bytes, self.items, self.done, self.place = known.bytes, known.items, known.done, known.place
        self._stream.truncate(self._bytes)

    def _begin(self) -> None:
        """Begin with nothing but the heading; noted before, so that there never is one that nothing is known of."""
        self._stream.truncate(0)
        self._note(0, None, done=False)
        self._append(_heading(self._names) if self._format == ".csv" else b"")

    def _append(self, content: bytes) -> None:
        left = memoryview(content)
        while left:
            left = left[self._stream.write(left) :]
        self._bytes += len(content)

    def _note(self, items: int, place: "Place | None", *, done: bool) -> None:
        """Write down how far it is; it is no farther than that."""
        import msgspec

        known = {"question": self._question, "bytes": self._bytes, "items": items, "done": done, "place": place}
        output.write_whole(self._journal, msgspec.json.encode(known).decode())
        self.items, self.place, self.done = items, place, done

    def _known(self) -> Any:  # noqa: ANN401 - made here, since the client is loaded no earlier
        """Read what `_note` wrote, None where it wrote nothing; Failure when somebody else wrote it."""
        import msgspec

        from laudo.client import Place

        fields = [("question", dict[str, object]), ("bytes", int), ("items", int), ("done", bool)]
        known = msgspec.defstruct("Known", [*fields, ("place", Place | None)])
        try:
            return msgspec.json.decode(self._journal.read_bytes(), type=known)
        except FileNotFoundError:
            return None
        except (msgspec.DecodeError, UnicodeDecodeError):
            text = f"{self._journal} is not what `laudo export` wrote; hint: remove it, or name another file"
            raise output.Failure(text) from None


def _held(part: Path) -> FileIO:
    """Open a file to append to, for nobody else to write as long as it is open; a new one is its owner's to read."""
    while True:
        stream = FileIO(part, "ab", opener=_private)
        try:
            _lock(stream)
        except BlockingIOError:
            raise output.Failure(f"another export is writing {part}; hint: let it end") from None
        with suppress(FileNotFoundError):
            # Who held it before may have given it its name meanwhile.
            if os.path.samestat(os.fstat(stream.fileno()), part.stat()):
                return stream
        stream.close()


def _lock(stream: FileIO) -> None:
    with suppress(ModuleNotFoundError):  # Windows has no such locks.
        import fcntl

        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o600)


def _ndjson(items: list[dict[str, Any]], _names: list[str]) -> bytes:
    import msgspec

    return b"".join(msgspec.json.encode(item) + b"\n" for item in items)


def _csv(items: list[dict[str, Any]], names: list[str]) -> bytes:
    return "".join(answers.csv_lines([item[name] for name in names] for item in items)).encode()


def _heading(names: list[str]) -> bytes:
    return f"{','.join(names)}\n".encode()


def _to_parquet(part: Path, file: Path, names: list[str]) -> None:
    """Turn lines of JSON into row groups, of as many items as one reading gives; the file appears when it is whole."""
    made = part.with_name(f"{part.name}.parquet")
    try:
        with output.new_file(made) as stream:
            _write_groups(stream, part, names)
            stream.flush()
            os.fsync(stream.fileno())
        made.replace(file)
    finally:
        made.unlink(missing_ok=True)


def _write_groups(stream: BinaryIO, part: Path, names: list[str]) -> None:
    pa, pj = _pyarrow(), import_module("pyarrow.json")
    schema = pa.schema([(name, _arrow_type(pa, name)) for name in names])
    with import_module("pyarrow.parquet").ParquetWriter(stream, schema) as writer:
        if longest := _longest_line(part):
            reading = pj.ReadOptions(block_size=max(_BLOCK, longest))
            parsing = pj.ParseOptions(explicit_schema=schema)
            for batch in pj.open_json(part, read_options=reading, parse_options=parsing):
                writer.write_batch(batch)


def _longest_line(part: Path) -> int:
    """Give its bytes: pyarrow refuses a line of which one reading has neither the beginning nor the end."""
    with part.open("rb") as lines:
        return max(map(len, lines), default=0)


def _arrow_type(pa: Any, name: str) -> Any:  # noqa: ANN401 - pyarrow is optional, and its types with it
    known = {"atualizado_em": pa.timestamp("ms", "UTC"), "pendente_validacao_manual": pa.bool_()}
    return known.get(name, pa.string())


def _pyarrow() -> Any:  # noqa: ANN401 - the same
    try:
        return import_module("pyarrow")
    except ModuleNotFoundError:
        raise output.Failure(".parquet needs the package pyarrow; hint: pip install '.[parquet]' in a clone") from None


FORMATS: Final[dict[str, Encode]] = {".csv": _csv, ".ndjson": _ndjson, ".parquet": _ndjson}
"""Ending of the name → how items are written while the file grows."""

_BLOCK: Final = 2**20
"""Bytes of lines in a row group of Parquet, unless one line has more."""
