"""The loop that one writes by hand: psycopg2's execute_batch with an upsert, a thousand to a page."""

import json
import sys
import time

import orjson
import psycopg2
from psycopg2.extras import execute_batch

COLUMNS = ["sku", "name", "price", "url", "scraped_at", "attrs"]


def main():
    database, path = sys.argv[1:3]
    updates = ", ".join(f"{name} = excluded.{name}" for name in COLUMNS[1:])
    sql = (
        f"INSERT INTO items ({', '.join(COLUMNS)}) VALUES (%s, %s, %s, %s, %s, %s) "
        f"ON CONFLICT (sku) DO UPDATE SET {updates}"
    )
    begun = time.perf_counter()
    with open(path, "rb") as file:
        items = orjson.loads(file.read())
    rows = [[*(item[name] for name in COLUMNS[:-1]), json.dumps(item["attrs"])] for item in items]
    connection = psycopg2.connect(database)
    with connection, connection.cursor() as cursor:
        execute_batch(cursor, sql, rows, page_size=1000)
    seconds = time.perf_counter() - begun
    print(json.dumps({"rows": len(rows), "seconds": seconds, "rows_per_s": len(rows) / seconds}))


main()
