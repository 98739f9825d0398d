"""dlt without its REST source: the pages are asked for by hand, with dlt's own client, in a transformer
that it runs in parallel, and each is a row with the text of the page, never parsed. The fastest way
through dlt that we found."""

import json
import os
import threading

os.environ.setdefault("RUNTIME__DLTHUB_TELEMETRY", "false")
os.environ.setdefault("RUNTIME__LOG_LEVEL", "CRITICAL")

from peer import PATH, WINDOW, arguments


def main():
    args = arguments()
    os.environ.setdefault("EXTRACT__WORKERS", str(args.in_flight))
    os.environ.setdefault("EXTRACT__MAX_PARALLEL_ITEMS", str(4 * args.in_flight))
    os.environ.setdefault("NORMALIZE__WORKERS", "1")
    import dlt
    from dlt.sources.helpers import requests

    own = threading.local()

    def fetch(page):
        if not hasattr(own, "session"):
            own.session = requests.Client().session
        response = own.session.get(f"{args.base}/{PATH}", params={**WINDOW, "pagina": page})
        return {"month": "2024-07", "page": page, "status": response.status_code, "body": response.text}

    @dlt.resource(selected=False)
    def numbers():
        first = fetch(1)
        yield [first]
        for page in range(2, json.loads(first["body"])["totalPaginas"] + 1):
            yield [page]

    @dlt.transformer(parallelized=True, table_name="pages", write_disposition="append", max_table_nesting=0)
    def rows(items):
        for item in items:
            yield item if isinstance(item, dict) else fetch(item)

    @dlt.source
    def pncp():
        return numbers | rows

    pipeline = dlt.pipeline(
        "dlt_raw",
        destination=dlt.destinations.duckdb(args.database),
        dataset_name="raw",
        pipelines_dir=os.path.join(args.directory, "dlt"),
    )
    pipeline.run(pncp(), loader_file_format="parquet").raise_on_failed_jobs()


if __name__ == "__main__":
    main()
