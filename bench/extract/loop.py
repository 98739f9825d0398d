"""The loop that one writes by hand: aiohttp, a bounded queue, one thread that writes to DuckDB, the
body of each page as text, 32 pages to a commit. No retries, no totals, no second run: the least that
a page in a file can cost in Python."""

import asyncio
import queue
import threading

import aiohttp
import duckdb
import orjson
import pyarrow

from peer import PATH, WINDOW, arguments

COMMIT = 32
AHEAD = 64


def write(database, arrived):
    connection = duckdb.connect(database)
    connection.execute("CREATE TABLE pages (endpoint TEXT, month TEXT, page INTEGER, body TEXT)")
    batch = []

    def commit():
        if not batch:
            return
        rows = pyarrow.table({
            "endpoint": pyarrow.array([PATH] * len(batch)),
            "month": pyarrow.array(["2024-07"] * len(batch)),
            "page": pyarrow.array([page for page, _ in batch], pyarrow.int32()),
            "body": pyarrow.array([body.decode() for _, body in batch]),
        })
        connection.register("rows", rows)
        connection.execute("INSERT INTO pages SELECT * FROM rows")
        connection.unregister("rows")
        batch.clear()

    while (item := arrived.get()) is not None:
        batch.append(item)
        if len(batch) == COMMIT:
            commit()
    commit()
    connection.close()


async def read(args, arrived):
    url = f"{args.base}/{PATH}"
    loop = asyncio.get_running_loop()
    connector = aiohttp.TCPConnector(limit=args.in_flight)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def fetch(page):
            async with session.get(url, params={**WINDOW, "pagina": page}) as response:
                response.raise_for_status()
                body = await response.read()
            try:
                arrived.put_nowait((page, body))
            except queue.Full:
                await loop.run_in_executor(None, arrived.put, (page, body))
            return body

        promised = orjson.loads(await fetch(1))["totalPaginas"]
        pages = iter(range(2, promised + 1))

        async def work():
            for page in pages:
                await fetch(page)

        await asyncio.gather(*(work() for _ in range(args.in_flight)))


def main():
    args = arguments()
    arrived = queue.Queue(AHEAD)
    writer = threading.Thread(target=write, args=(args.database, arrived))
    writer.start()
    try:
        asyncio.run(read(args, arrived))
    finally:
        arrived.put(None)
        writer.join()


main()
