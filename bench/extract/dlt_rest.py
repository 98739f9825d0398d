"""dlt's own REST source, tuned: a row for each page with the list in it as JSON, parquet between its
stages, and as many resources as requests in flight. Its paginator goes page by page, so each resource
has its own range of pages, which only somebody who knows the total beforehand can give it: here dlt is
told. The total is not looked up in each response either, which would parse it once more."""

import os

os.environ.setdefault("RUNTIME__DLTHUB_TELEMETRY", "false")
os.environ.setdefault("RUNTIME__LOG_LEVEL", "CRITICAL")

from peer import PATH, WINDOW, arguments


def ranges(pages, parts):
    edges = [1 + pages * part // parts for part in range(parts + 1)]
    return [(first, end) for first, end in zip(edges, edges[1:]) if first < end]


def resource(first, end):
    paginator = {
        "type": "page_number",
        "base_page": 1,
        "page": first,
        "page_param": "pagina",
        "total_path": None,
        "maximum_page": end,
    }
    endpoint = {"path": PATH, "params": WINDOW, "data_selector": "$", "paginator": paginator}
    return {
        "name": f"from_{first}",
        "table_name": "pages",
        "max_table_nesting": 0,
        "endpoint": endpoint,
    }


def main():
    args = arguments()
    os.environ.setdefault("EXTRACT__WORKERS", str(args.in_flight))
    os.environ.setdefault("EXTRACT__MAX_PARALLEL_ITEMS", str(4 * args.in_flight))
    os.environ.setdefault("NORMALIZE__WORKERS", "1")
    import dlt
    from dlt.sources.rest_api import rest_api_source

    configuration = {
        "client": {"base_url": f"{args.base}/"},
        "resource_defaults": {"write_disposition": "append"},
        "resources": [resource(*part) for part in ranges(args.pages, args.in_flight)],
    }
    source = rest_api_source(configuration, name="pncp", parallelized=True)
    pipeline = dlt.pipeline(
        "dlt_rest",
        destination=dlt.destinations.duckdb(args.database),
        dataset_name="raw",
        pipelines_dir=os.path.join(args.directory, "dlt"),
    )
    pipeline.run(source, loader_file_format="parquet").raise_on_failed_jobs()


if __name__ == "__main__":
    main()
