"""What the API means: pure, no socket, file, clock, environment or log.

The words of plans, from what is asked to what is read:

- **axis**: an order of a table's rows. A **key** is where a row stands on it: first its **value**, then a **tie** that
  no other row has. An axis **repeats** if any number of rows may share a value. An order is **falling** if it reads
  values downwards; ties go up all the same (`axes`).
- **group**: facets whose rows are read together; `numbers` are the facets' numbers, None stands for all (`facets`).
- **target**: the page looked for. **taken**: its items found so far, in whichever way (`reading`). **after**: an item
  that comes before it, `skip` rows away; a client's walk by cursor has seen it last (`target`, `cursor`).
- **bounds**: a range of an axis that a filter asks for. **lower**, **upper**: any two keys between which rows are read.
- **limit**: how many rows are wanted. **most**: how many rows a look-up may look at, or a lead leads to. **among**: how
  many rows of any facets there are where the wanted ones are, which tells how many a scan is likely to meet.
- **place**: how many rows of a group come before a key: `rank` finds it, `locate` finds the key. **span**: the place at
  which a range begins, and how many rows it has (`tally`).
- **stretch**: rows of one group that are read one after another on one axis (`reading`).
- **part**: the rows of a group that are also in a range **across**, of another axis. **point**: a key with its place,
  and with how many rows of the part come before it: those **held** (`part`, `points`).
- **lead**: words, or a range, whose rows are tested for all other filters; a look-up goes **through** it (`leads`).

Rows are found in one of these ways. On one axis they are **scanned** (read in order, their facets tested), or the
facets' own ranges are **merged**, or **gathered** and sorted. Otherwise rows are **walked** (read in the order of the
list and tested for all filters) or **collected** (all that match are found, then sorted). A place in a range of another
axis can be **guessed** by proportion (`lookups`, `walking`, `guesses`).
"""
