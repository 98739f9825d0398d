"""The keys of the records that a peer has left in its directory, each once, one to a line."""

import json
import os
import sys

from peer import KEY, inside


def lines(path):
    """What a line that was cut by a kill would have said is not stored, nor what was appended to it."""
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                yield json.loads(line)[KEY]
            except ValueError:
                continue


def rows(path):
    import duckdb

    connection = duckdb.connect(path, read_only=True)
    query = "SELECT numero_controle_pncp FROM pncp.contratacoes"
    return [key for (key,) in connection.execute(query).fetchall()]


def main():
    database, text = (inside(sys.argv[1], f"stored.{form}") for form in ("duckdb", "jsonl"))
    keys = rows(database) if os.path.exists(database) else lines(text)
    print("\n".join(sorted(set(keys))))


main()
