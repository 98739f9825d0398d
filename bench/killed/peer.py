"""What the peers of `cargo xtask torture peers` share: the command line, and the list that they read.

    SCRIPT --base http://127.0.0.1:PORT/api/consulta --directory DIR [--workers N]

The same command starts a peer, and starts it again after it was killed. All that it knows of the first time
lies in DIR, as does what it stored. Nobody believes it: `stored.py` looks.
"""

import argparse
import os

PATH = "v1/contratacoes/publicacao"
KEY = "numeroControlePNCP"
LIST = {"codigoModalidadeContratacao": 6, "tamanhoPagina": 50}
MONTH = {"dataInicial": "20240701", "dataFinal": "20240731"}


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--base", required=True)
    parser.add_argument("--directory", required=True)
    parser.add_argument("--workers", type=int)
    return parser.parse_args()


def inside(directory, name):
    return os.path.join(directory, name)
