"""dlt's merge into PostgreSQL by its key, as its documentation advises: upsert, no nested tables."""

import json
import os
import sys
import tempfile
import time
from urllib.parse import urlsplit

os.environ.setdefault("RUNTIME__DLTHUB_TELEMETRY", "false")
os.environ.setdefault("RUNTIME__LOG_LEVEL", "CRITICAL")
os.environ.setdefault("DATA_WRITER__BUFFER_MAX_ITEMS", "50000")

import dlt
import orjson


def main():
    database, path = sys.argv[1:3]
    # It wants a password, also of a server that asks for none.
    database = urlsplit(database)
    database = database._replace(netloc=f"{database.username}:none@{database.netloc.split('@')[-1]}").geturl()
    begun = time.perf_counter()
    with open(path, "rb") as file:
        items = orjson.loads(file.read())
    pipeline = dlt.pipeline(
        "dlt_merge",
        destination=dlt.destinations.postgres(database),
        dataset_name="dlt_items",
        pipelines_dir=tempfile.mkdtemp(prefix="dlt-", dir=os.path.dirname(path)),
    )
    resource = dlt.resource(
        items,
        name="items",
        primary_key="sku",
        write_disposition={"disposition": "merge", "strategy": "upsert"},
        columns={"attrs": {"data_type": "json"}},
        max_table_nesting=0,
    )
    pipeline.run(resource).raise_on_failed_jobs()
    seconds = time.perf_counter() - begun
    print(json.dumps({"rows": len(items), "seconds": seconds, "rows_per_s": len(items) / seconds}))


main()
