"""The fit process: reads examples and vectors from a folder, writes the fitted heads into it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

EXAMPLES = "examples.json"
VECTORS = "vectors.npz"
MODEL = "model"


def main(folder: Path) -> None:
    """Fit what lies in `folder`: `examples.json` [[text, intent], …] and `vectors.npz` (row of each text, vectors)."""
    from intent.fit import Example, fit
    from intent.model_folder import Origin, save_heads

    job = json.loads((folder / EXAMPLES).read_text(encoding="utf-8"))
    with np.load(folder / VECTORS) as arrays:
        rows, points = arrays["rows"].tolist(), arrays["points"]
    examples = [Example(text, intent) for text, intent in job["examples"]]
    vectors = {examples[row].text: points[place].tobytes() for place, row in enumerate(rows)}
    heads = fit(examples, vectors, seed=job["seed"])
    save_heads(heads, folder / MODEL, Origin.model_validate(job["origin"]))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
