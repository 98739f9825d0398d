"""How many pages a peer has left in its file, and how many of them are different ones."""

import json
import sys

import duckdb



def main():
    connection = duckdb.connect(sys.argv[1], read_only=True)
    tables = connection.execute(
        "SELECT schema_name || '.' || table_name, list(column_name) FROM duckdb_columns()"
        " WHERE table_name = 'pages' AND NOT internal GROUP BY ALL"
    ).fetchall()
    [(table, columns)] = tables
    number = next(name for name in ("page", "numero_pagina") if name in columns)
    rows, different = connection.execute(
        f"SELECT count(*), count(DISTINCT {number}) FROM {table}"
    ).fetchone()
    print(json.dumps({"rows": rows, "pages": different}))


main()
