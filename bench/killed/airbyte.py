"""A source of Airbyte's CDK with what a platform does around it: records are stored as they come, a state is
kept once the records before it are durable, and the next run is given the last state that was kept."""

import json
import os

from airbyte_cdk.entrypoint import AirbyteEntrypoint
from airbyte_cdk.sources.declarative.yaml_declarative_source import YamlDeclarativeSource

from peer import arguments, inside

MANIFEST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "airbyte.yaml")
CATALOG = {
    "streams": [
        {
            "stream": {
                "name": "contratacoes",
                "json_schema": {},
                "supported_sync_modes": ["full_refresh", "incremental"],
            },
            "sync_mode": "incremental",
            "destination_sync_mode": "append_dedup",
        }
    ]
}


def write(path, content):
    """Whole or not at all."""
    with open(f"{path}.new", "w") as file:
        json.dump(content, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(f"{path}.new", path)


def main():
    args = arguments()
    config, catalog, state = (
        inside(args.directory, name) for name in ("config.json", "catalog.json", "state.json")
    )
    write(config, {"base": f"{args.base}/", "workers": args.workers})
    write(catalog, CATALOG)
    command = ["read", "--config", config, "--catalog", catalog]
    if os.path.exists(state):
        command += ["--state", state]
    source = YamlDeclarativeSource(
        MANIFEST,
        catalog=YamlDeclarativeSource.read_catalog(catalog),
        config=YamlDeclarativeSource.read_config(config),
        state=YamlDeclarativeSource.read_state(state) if os.path.exists(state) else None,
    )
    messages = AirbyteEntrypoint(source).run(AirbyteEntrypoint.parse_args(command))
    with open(inside(args.directory, "stored.jsonl"), "a") as stored:
        for line in messages:
            message = json.loads(line)
            match message["type"]:
                case "RECORD":
                    stored.write(json.dumps(message["record"]["data"]) + "\n")
                case "STATE":
                    stored.flush()
                    os.fsync(stored.fileno())
                    write(state, [message["state"]])
                    print(json.dumps(message["state"]), flush=True)
                case _:
                    print(line, flush=True)


if __name__ == "__main__":
    main()
