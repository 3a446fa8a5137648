"""Cursors: where a walk through a list goes on, signed, for one account, one set of filters and one order."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import blake2b
from hmac import compare_digest
from typing import Final

import msgspec

from laudo.core import disclosure, errors
from laudo.core.errors import ApiError
from laudo.core.query import BAD_CURSOR, Query
from laudo.core.values import Stored

CHANGED: Final = -1
"""Stands for a version after the list has changed during a walk."""
_MAC_BYTES: Final = 16


@disclosure.only("page", "seen")
class After(msgspec.Struct, array_like=True, frozen=True):
    """The last item that a walk has seen: its value in the order, its key, and the number of the page that follows.

    `seen` counts the items up to it. `version` is that of the list when the walk began; while it stays the same, `seen`
    tells how many items are left. Once a page was read at another version it is CHANGED for good, because a replica may
    show the first version again.
    """

    page: int
    seen: int
    version: int
    value: Stored
    key: str


def follow(query: Query, items: bytes, *, page: int, seen: int, version: int) -> After:
    """Give the place after the last of a page's items (their JSON joined by commas); page number `page` comes next."""
    last = msgspec.json.decode(items[items.rindex(b'{"%s":"' % query.resource.key.encode()) :])
    return After(page, seen, version, last[query.order.field.name], last[query.resource.key])


def skipped(query: Query, after: After | None) -> int:
    """Tell how many items lie between the item `after`, or else the beginning of the list, and the page."""
    if after is None:
        return query.offset
    return 0 if query.cursor else query.offset - after.seen


def seal(after: After, query: Query, *, secret: bytes, owner: tuple[int, int]) -> str:
    """Write a cursor as URL-safe text that only the holder of `secret` can make."""
    payload = msgspec.json.encode(after)
    return _text(_mac(payload, query, secret, owner) + payload)


def unseal(query: Query, *, secret: bytes, owner: tuple[int, int]) -> After:
    """Read the query's cursor; raises ApiError (400) unless it was made for this owner, these filters, this order."""
    text = query.cursor or ""
    try:
        sealed = urlsafe_b64decode(text + "=" * (-len(text) % 4))
        mac, payload = sealed[:_MAC_BYTES], sealed[_MAC_BYTES:]
        # Decoding ignores meaningless characters and bits, so the text is compared too.
        if _text(sealed) == text and compare_digest(mac, _mac(payload, query, secret, owner)):
            return msgspec.json.decode(payload, type=After)
    except (ValueError, msgspec.DecodeError):
        pass
    raise ApiError(errors.INVALID, message=BAD_CURSOR, keys=("cursor",))


def _text(sealed: bytes) -> str:
    return urlsafe_b64encode(sealed).rstrip(b"=").decode()


def _mac(payload: bytes, query: Query, secret: bytes, owner: tuple[int, int]) -> bytes:
    signed = b"%d %d %s %s" % (*owner, query.question, payload)
    return blake2b(signed, key=secret, digest_size=_MAC_BYTES).digest()
