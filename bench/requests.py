"""Requests per second and CPU per request, beside the same server and framework giving a constant body.

    python bench/requests.py --reports 10000 --rounds 5

Servers with one worker each share one core; the load comes from the others: a closed loop over connections that stay
open. `laudo` runs as `laudo serve` does and writes its request log to a file, `no log` is the same without, `constant`
(bench/constant.py) answers bytes of the row's size and writes no log; rows that are `cold` are asked of workers that
keep no answers. In each round every row is asked of every server in turn. Shown are medians over the rounds, and how
near laudo comes to the constant body (1.00 is as good) by requests per second and, which noise disturbs less, by
CPU: user + system time of the worker. Needs Linux and two cores.

    python bench/requests.py --store postgresql://… --connections 8

On PostgreSQL, a service with a worker for each core and pgbench, which sends it the prepared statement of a first page
over as many connections, take turns on the same machine as the server; shown is what part of pgbench's rate is ours:
of that which it has as it comes, where the server plans the statement each time, and of that with the plan kept, as a
service has it kept.
"""

import argparse
import os
import select
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

import pgbench
from laudo import demo
from laudo.core.sql import Owner, Statement
from laudo.server import keys, migrations
from laudo.server.stores import open_store

LAUDO: Final = Path(sys.executable).with_name("laudo")
CONSTANT: Final = Path(__file__).with_name("constant.py")
_LARGEST: Final = "SELECT id_organizacao, id_conta FROM facet GROUP BY 1, 2 ORDER BY sum(total) DESC LIMIT 1"
TICKS: Final = os.sysconf("SC_CLK_TCK")
ARRIVED: Final = memoryview(bytearray(262_144))
"""All answers are received into the same memory: allocating it each time cost more CPU than the rest of the load."""


class Row(NamedTuple):
    """What is asked: `cold` of workers that keep no answers, `known` with the answer's ETag, for a 304."""

    name: str
    target: str
    cold: bool = False
    known: bool = False


PGBENCH: Final = {"pgbench": "auto", "pgbench, plan kept": "force_generic_plan"}
"""The `plan_cache_mode` of each pgbench run."""

NAMES: Final = ("laudo", "no log", "constant")

ROWS: Final = (
    Row("page 1, cold", "/relatorios", cold=True),
    Row("page 1, again", "/relatorios"),
    Row("page 1, 304", "/relatorios", known=True),
    Row("filter, cold", "/relatorios?tipo_pessoa=PESSOA&status=CONCLUIDO", cold=True),
    Row("filter, again", "/relatorios?tipo_pessoa=PESSOA&status=CONCLUIDO"),
    Row("people, cold", "/pessoas", cold=True),
    Row("people, again", "/pessoas"),
    Row("/usuario", "/usuario"),
    Row("/health", "/health"),
)


class Server(NamedTuple):
    """A running server and the process that works for it."""

    name: str
    port: int
    worker: int

    def memory(self) -> float:
        """The most megabytes that the worker has held."""
        status = Path(f"/proc/{self.worker}/status").read_text("ascii")
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024

    def cpu(self) -> float:
        """The seconds of CPU that the worker has used so far."""
        fields = Path(f"/proc/{self.worker}/stat").read_text("ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS


class Question(NamedTuple):
    """A request's bytes, the server to send them to, and the answer to expect: its status and the size of its body."""

    server: Server
    request: bytes
    size: int
    status: int = 200


class Sample(NamedTuple):
    """One measurement."""

    per_second: float
    cpu_us: float


def main() -> None:
    arguments = _arguments()
    if arguments.store:
        beside_pgbench(arguments)
        return
    first, *others = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory(prefix="laudo-bench-") as temporary, ExitStack() as stack:
        folder = arguments.folder or Path(temporary)
        token, *_ = fill(f"sqlite:///{folder}/laudo.db", folder, arguments.reports)
        os.sched_setaffinity(0, {first})  # the servers inherit it
        questions = start(stack, folder, token)
        os.sched_setaffinity(0, others)
        samples: dict[tuple[Row, str], list[Sample]] = {}
        for number in range(arguments.rounds):
            turn = number % len(NAMES)
            for row in ROWS:
                for name in (*NAMES[turn:], *NAMES[:turn]):
                    sample = load(questions[row, name], arguments.connections, arguments.seconds)
                    samples.setdefault((row, name), []).append(sample)
        show({key: middle(seen) for key, seen in samples.items()}, questions)
        largest = max(question.server.memory() for question in questions.values())
        print(f"\nlargest worker: {largest:.0f} MB")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reports", type=int, default=10_000, help="how many reports the store has (default: 10,000)")
    parser.add_argument("--rounds", type=int, default=5, help="how often everything is measured (default: 5)")
    parser.add_argument("--seconds", type=float, default=1.0, help="how long one measurement takes (default: 1)")
    parser.add_argument("--connections", type=int, default=32, help="how many requests are in flight (default: 32)")
    parser.add_argument("--folder", type=Path, help="where to keep the store for the next time")
    parser.add_argument("--store", help="a PostgreSQL database, which is filled if it is empty: compare with pgbench")
    return parser.parse_args()


def fill(store: str, folder: Path, count: int) -> list[str]:
    """Make the store, unless it is there; gives tokens, the first one of the largest account."""
    folder.mkdir(parents=True, exist_ok=True)
    keys.make(folder / "laudo.key")
    key = keys.load(folder / "laudo.key")
    with closing(open_store(store, write=True)) as database:
        migrations.migrate(database)
        return [access.token for access in demo.fill(database, key, count=count).accesses]


def beside_pgbench(arguments: argparse.Namespace) -> None:
    """Compare a service on PostgreSQL with the statement of its first page alone."""
    with tempfile.TemporaryDirectory(prefix="laudo-bench-") as temporary, ExitStack() as stack:
        folder, store = arguments.folder or Path(temporary), arguments.store
        token, *_ = fill(store, folder, arguments.reports)
        file = folder / "page.sql"
        with closing(open_store(store)) as database, database.snapshot() as connection:
            [(id_organizacao, id_conta)] = connection.fetch(Statement(_LARGEST))
            file.write_text(pgbench.script(connection, Owner(id_organizacao, id_conta)))
        command = [LAUDO, "serve", "--store", store, "--key-file", f"{folder}/laudo.key"]
        kept = stack.enter_context(running("kept", command, folder))
        cold = stack.enter_context(running("cold", [*command, "--cache-bytes", "0"], folder))
        found: dict[str, list[float]] = {}
        for _ in range(arguments.rounds):
            for name, plans in PGBENCH.items():
                rate = pgbench.per_second(
                    store, file, plans=plans, clients=arguments.connections, seconds=arguments.seconds
                )
                found.setdefault(name, []).append(rate)
            for row in ROWS:
                question = asked(cold if row.cold else kept, row, token)
                sample = load(question, arguments.connections, arguments.seconds)
                found.setdefault(row.name, []).append(sample.per_second)
    wholes = [median(found[name]) for name in PGBENCH]
    for name, rates in found.items():
        rate = median(rates)
        print(f"{name:20}{rate:>10,.0f}/s", *(f"{rate / whole:>8.2f}" for whole in wholes), sep="")


def start(stack: ExitStack, folder: Path, token: str) -> Mapping[tuple[Row, str], Question]:
    """Start the servers; gives, for each row and column, what to ask and of which server."""
    serve: list[str | Path] = [
        LAUDO,
        "serve",
        "--store",
        f"sqlite:///{folder}/laudo.db",
        "--key-file",
        f"{folder}/laudo.key",
    ]
    serve += ["--workers", "1"]
    servers = {}
    for cold in (False, True):
        command = [*serve, "--cache-bytes", "0" if cold else "8000000"]
        servers["laudo", cold] = stack.enter_context(running(f"laudo{cold:d}", command, folder))
        servers["no log", cold] = stack.enter_context(running(f"quiet{cold:d}", [*command, "--no-log"], folder))
    questions = {}
    for row in ROWS:
        for name in ("laudo", "no log"):
            questions[row, name] = asked(servers[name, row.cold], row, token)
    sizes = sorted({str(question.size) for question in questions.values()})
    constant = stack.enter_context(running("constant", [sys.executable, CONSTANT, *sizes], folder))
    for row in ROWS:
        size = questions[row, "laudo"].size
        questions[row, "constant"] = Question(constant, written(f"/{size}", token), size)
    return questions


def asked(server: Server, row: Row, token: str) -> Question:
    """Ask once; gives the question to repeat and the answer to expect."""
    head, body = answer_of(server, written(row.target, token))
    if not row.known:
        return Question(server, written(row.target, token), len(body))
    etag = head.lower().partition(b"etag: ")[2]
    known = head[len(head) - len(etag) :].partition(b"\r\n")[0].decode()
    return Question(server, written(row.target, token, f"If-None-Match: {known}\r\n"), 0, 304)


@contextmanager
def running(name: str, command: Sequence[str | Path], folder: Path) -> Iterator[Server]:
    """Run a server on a free port; its log goes to a file in the folder."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen([*command, "--port", str(port)], stdout=log, stderr=subprocess.DEVNULL)
    try:
        yield Server(name, port, worker_of(process.pid, port))
    finally:
        process.terminate()
        process.wait()


def worker_of(pid: int, port: int) -> int:
    """Wait until the server answers; gives the one child of its main process."""
    for _ in range(500):
        with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()
            return int(children[-1])
        time.sleep(0.02)
    raise SystemExit("a server did not start")


def written(target: str, token: str, more: str = "") -> bytes:
    return f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: {token}\r\n{more}\r\n".encode()


def answer_of(server: Server, request: bytes) -> tuple[bytes, bytes]:
    """Ask once and give the head and the body."""
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    return head, body


def load(question: Question, connections: int, seconds: float) -> Sample:
    """Keep one request in flight on each connection, and count the answers."""
    server = question.server
    with ExitStack() as stack, select.epoll() as ready:
        clients: dict[int, socket.socket] = {}
        for _ in range(connections):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            clients[client.fileno()] = client
            ready.register(client, select.EPOLLIN)
        received = dict.fromkeys(clients, b"")
        answered, cpu, began = 0, server.cpu(), time.perf_counter()
        for client in clients.values():
            client.sendall(question.request)
        while (left := began + seconds - time.perf_counter()) > 0:
            for number, _ in ready.poll(left):
                received[number] += more(clients[number])
                if is_whole(received[number], question):
                    received[number] = b""
                    clients[number].sendall(question.request)
                    answered += 1
        elapsed, used = time.perf_counter() - began, server.cpu() - cpu
    if not answered:
        raise SystemExit(f"{server.name} gives no answer")
    return Sample(answered / elapsed, used / answered * 1e6)


def more(client: socket.socket) -> bytes:
    """Give what has arrived of an answer; ends the program if the server has closed the connection."""
    if size := client.recv_into(ARRIVED):
        return bytes(ARRIVED[:size])
    raise SystemExit("a server ended a connection")


def is_whole(answer: bytes, question: Question) -> bool:
    """Tell whether an answer has arrived in full; ends the program if it is not the expected one."""
    head = answer.find(b"\r\n\r\n")
    missing = head + 4 + question.size - len(answer)
    if head < 0 or missing > 0:
        return False
    if missing < 0 or not answer.startswith(b"HTTP/1.1 %d " % question.status):
        raise SystemExit(f"unexpected answer: {answer[:200]!r}")
    return True


def middle(seen: Sequence[Sample]) -> Sample:
    return Sample(median(sample.per_second for sample in seen), median(sample.cpu_us for sample in seen))


def show(found: Mapping[tuple[Row, str], Sample], questions: Mapping[tuple[Row, str], Question]) -> None:
    print(f"{'':14}{'':>7}{'requests/s':>30}{'CPU µs a request':>30}{'laudo : constant':>20}{'no log : constant':>20}")
    print(
        f"{'':14}{'bytes':>7}"
        + f"{'laudo':>10}{'no log':>10}{'constant':>10}" * 2
        + f"{'by req/s':>12}{'by CPU':>8}" * 2
    )
    for row in ROWS:
        ours = [found[row, "laudo"], found[row, "no log"]]
        constant = found[row, "constant"]
        print(
            f"{row.name:14}{questions[row, 'laudo'].size:>7,}",
            *(f"{sample.per_second:>10,.0f}" for sample in (*ours, constant)),
            *(f"{sample.cpu_us:>10.1f}" for sample in (*ours, constant)),
            *(f"{s.per_second / constant.per_second:>12.2f}{constant.cpu_us / s.cpu_us:>8.2f}" for s in ours),
            sep="",
        )


if __name__ == "__main__":
    main()
