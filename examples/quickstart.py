"""Learn a model that can forget, in a dozen lines: the Python twin of `foul learn`."""

import sys
from pathlib import Path

import foul


def main(out: Path) -> None:
    config = foul.load_config("digits", {"learning.rounds": 5})
    run = foul.learn(config, out)
    test = run.summary()["accuracy"]["test"]
    for domain, score in test["domains"].items():
        print(f"{domain:10} {100 * score['accuracy']:5.1f} %")
    print(f"{'all':10} {100 * test['all']['accuracy']:5.1f} %")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "runs/quickstart"))
