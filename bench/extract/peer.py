"""What the Python peers share: the command line that `cargo xtask bench extract` speaks, and the list.

    SCRIPT --base http://127.0.0.1:PORT/api/consulta --pages N --in-flight N --directory DIR

A peer leaves its pages in DIR/pages.duckdb. Nobody believes it: `count.py` looks.
"""

import argparse
import os

PATH = "v1/contratacoes/publicacao"
WINDOW = {
    "dataInicial": "20240701",
    "dataFinal": "20240731",
    "codigoModalidadeContratacao": 6,
    "tamanhoPagina": 50,
}


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--base", required=True)
    parser.add_argument("--pages", type=int, required=True)
    parser.add_argument("--in-flight", type=int, required=True)
    parser.add_argument("--directory", required=True)
    args = parser.parse_args()
    args.database = os.path.join(args.directory, "pages.duckdb")
    return args
