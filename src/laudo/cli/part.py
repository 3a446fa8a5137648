"""The file of an export while it grows: the only place that writes exports, and that knows how far one is."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from laudo.cli import answers, files, output
from laudo.cli.login import Access
from laudo.core.resources import Resource

if TYPE_CHECKING:
    from laudo.client import Batch, Place

Encode = Callable[[list[dict[str, Any]], list[str]], bytes]


class Part:
    """One export of what one account sees, written by one process at a time.

    It grows in a file beside its final name. Once `write` returns, its batch is kept when the same export runs again.
    """

    def __init__(
        self,
        file: Path,
        resource: Resource,
        *,
        access: Access,
        question: Mapping[str, object],
        token_renewed: bool = False,
    ) -> None:
        """`token_renewed` continues what another token has begun.

        Raises Failure if the file is standard output, or its name has no known ending or is nothing else.
        """
        if file.name.lower() in FORMATS:
            raise output.Failure(f"{file} is only an extension; hint: {file.with_name(resource.name + file.name)}")
        if str(file) in ("-", "/dev/stdout"):
            hint = f"`laudo {resource.name} --all --csv` prints the list"
            raise output.Failure(f"an export needs a file, so that it can be resumed; hint: {hint}")
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
        self._question = {"list": resource.name, "format": self._format, **access.identity(), **question}
        self._token_renewed = token_renewed
        self.items = 0
        self.place: Place | None = None
        self.done = False
        self.resumed = False
        self.began = datetime.now(UTC)
        self._bytes = 0

    def write(self, batch: "Batch[Any]") -> None:
        """Append the items of a batch, and save where to continue."""
        self._append(self._encode([item.to_wire() for item in batch.itens], self._names))
        self._write_journal(self.items + len(batch.itens), batch.place, done=batch.place is None)

    def finish(self) -> None:
        """Give the complete file its final name; for Parquet, convert it first."""
        if self._format == ".parquet":
            _to_parquet(self._part, self._file, self._names)
            self._part.unlink()
        else:
            with files.naming(self._part):
                os.fsync(self._stream.fileno())
            self._part.replace(self._file)
        self._journal.unlink(missing_ok=True)

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Continue what is there; on a failure, say what is kept and how to get the rest.

        Raises Failure if what is there is not a file, another process writes it, or it is of another question or token.
        """
        for path in (self._part, self._journal):
            if path.exists() and not path.is_file():
                raise output.Failure(f"{path} is not a file; hint: remove it")
        with files.open_locked(self._part, f"another export is writing {self._part}") as self._stream:
            try:
                self._resume()
            except output.Failure:
                if not os.fstat(self._stream.fileno()).st_size:  # It was made just now; the journal may be another's.
                    self._part.unlink()
                raise
            self._part.chmod(0o600)
            hint = f"run the same command again to resume, or remove {self._part} to start over"
            resumable = output.resumable(
                lambda: f"{output.counted(self.items, 'item')}; hint: {hint}" if self.items else ""
            )
            with resumable, self._removed_if_empty():
                if not self.items:
                    self._begin()
                yield

    @contextmanager
    def _removed_if_empty(self) -> Iterator[None]:
        """Remove the files if the block fails without an item: the question may hold a CPF, the next may be another."""
        try:
            yield
        except BaseException:
            if not self.items:
                self._part.unlink(missing_ok=True)
                self._journal.unlink(missing_ok=True)
            raise

    def _resume(self) -> None:
        """Continue where the journal says, unless it counts no items or the file is shorter than it says."""
        journal, size = self._read_journal(), os.fstat(self._stream.fileno()).st_size
        if journal is None and size:
            raise output.Failure(f"{self._part} is not a file of `laudo export`; hint: remove it, or name another file")
        if journal is None or not journal.items or size < journal.bytes:
            return
        if journal.question | {"token": self._question["token"]} != self._question:
            text = "belongs to an export of another list or service, in another format or order, or with other filters"
            raise output.Failure(f"{self._journal} {text}; hint: remove {self._part} to start over")
        if journal.question != self._question and not self._token_renewed:
            hint = f"give --token-renewed if it sees the same account, else remove {self._part} to start over"
            raise output.Failure(f"{self._journal} is of another token; hint: {hint}")
        self._bytes, self.items, self.done, self.place = journal.bytes, journal.items, journal.done, journal.place
        self.resumed, self.began = True, journal.began
        self._stream.truncate(self._bytes)

    def _begin(self) -> None:
        """Begin with only the heading; the journal is written first, so that no file is ever without one."""
        self._stream.truncate(0)
        self._write_journal(0, None, done=False)
        self._append(_heading(self._names) if self._format == ".csv" else b"")

    def _append(self, content: bytes) -> None:
        left = memoryview(content)
        with files.naming(self._part):
            while left:
                left = left[self._stream.write(left) :]
        self._bytes += len(content)

    def _write_journal(self, items: int, place: "Place | None", *, done: bool) -> None:
        """Save how far the export is; the next run cuts off what the file holds beyond that."""
        import msgspec

        journal = {
            "question": self._question,
            "began": self.began,
            "bytes": self._bytes,
            "items": items,
            "done": done,
            "place": place,
        }
        files.write_atomically(self._journal, msgspec.json.encode(journal).decode())
        self.items, self.place, self.done = items, place, done

    def _read_journal(self) -> Any:  # noqa: ANN401 - made here, since the client is loaded no earlier
        """Read what `_write_journal` wrote, None if there is nothing; raises Failure if something else wrote it."""
        import msgspec

        from laudo.client import Place

        fields = [
            ("question", dict[str, object]),
            ("began", datetime),
            ("bytes", int),
            ("items", int),
            ("done", bool),
            ("place", Place | None),
        ]
        journal_type = msgspec.defstruct("Journal", fields)
        try:
            return msgspec.json.decode(self._journal.read_bytes(), type=journal_type)
        except FileNotFoundError:
            return None
        except (msgspec.DecodeError, UnicodeDecodeError):
            text = f"{self._journal} is not a file of `laudo export`; hint: remove it, or name another file"
            raise output.Failure(text) from None


def _ndjson(items: list[dict[str, Any]], _names: list[str]) -> bytes:
    import msgspec

    return b"".join(msgspec.json.encode(item) + b"\n" for item in items)


def _csv(items: list[dict[str, Any]], names: list[str]) -> bytes:
    return "".join(answers.csv_lines([item[name] for name in names] for item in items)).encode()


def _heading(names: list[str]) -> bytes:
    return f"{','.join(names)}\n".encode()


def _to_parquet(part: Path, file: Path, names: list[str]) -> None:
    """Convert lines of JSON to Parquet, a row group for each block read; the file appears when it is complete."""
    temporary = part.with_name(f"{part.name}.parquet")
    try:
        with files.naming(temporary), files.new_file(temporary) as stream:
            _write_groups(stream, part, names)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)


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
    """Give the bytes of the longest line: pyarrow refuses a line if a block has neither its beginning nor its end."""
    with part.open("rb") as lines:
        return max(map(len, lines), default=0)


def _arrow_type(pa: Any, name: str) -> Any:  # noqa: ANN401 - pyarrow is optional, and its types with it
    known = {"atualizado_em": pa.timestamp("ms", "UTC"), "pendente_validacao_manual": pa.bool_()}
    return known.get(name, pa.string())


def _pyarrow() -> Any:  # noqa: ANN401 - the same
    try:
        return import_module("pyarrow")
    except ModuleNotFoundError:
        raise output.Failure(".parquet needs the package pyarrow; hint: pip install pyarrow") from None


FORMATS: Final[dict[str, Encode]] = {".csv": _csv, ".ndjson": _ndjson, ".parquet": _ndjson}
"""Ending of the name -> how items are encoded while the file grows."""

_BLOCK: Final = 2**20
"""Bytes of lines in a row group of Parquet, unless a single line is longer."""
