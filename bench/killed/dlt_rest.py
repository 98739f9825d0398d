"""dlt's own REST source into a DuckDB file, as its documentation shows it: one resource, its paginator of page
numbers, and rows that are merged by their key, so that what is loaded twice is there once. Its working
directory is kept: a pipeline that is started again loads what it had finished extracting."""

import os

os.environ.setdefault("RUNTIME__DLTHUB_TELEMETRY", "false")

from peer import KEY, LIST, MONTH, PATH, arguments, inside


def main():
    import dlt
    from dlt.sources.rest_api import rest_api_source

    args = arguments()
    paginator = {
        "type": "page_number",
        "base_page": 1,
        "page_param": "pagina",
        "total_path": "totalPaginas",
    }
    contratacoes = {
        "name": "contratacoes",
        "primary_key": KEY,
        "write_disposition": "merge",
        "endpoint": {
            "path": PATH,
            "params": {**LIST, **MONTH},
            "data_selector": "data",
            "paginator": paginator,
        },
    }
    source = rest_api_source(
        {"client": {"base_url": f"{args.base}/"}, "resources": [contratacoes]}, name="pncp"
    )
    pipeline = dlt.pipeline(
        "killed",
        destination=dlt.destinations.duckdb(inside(args.directory, "stored.duckdb")),
        dataset_name="pncp",
        pipelines_dir=inside(args.directory, "dlt"),
    )
    pipeline.run(source, loader_file_format="parquet").raise_on_failed_jobs()


if __name__ == "__main__":
    main()
