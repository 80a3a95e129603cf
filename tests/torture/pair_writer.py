"""A writer of pairs: two memories in one commit, again and again; each line names the two that were acknowledged.

python pair_writer.py ROOT NAME COUNT
"""

import sys

import jidomem


def half(name, n, side):
    return {
        "type": "fact",
        "summary": f"pair {name}{n} {side}",
        "applies_to_project": "p",
        "asserted_by": "worker",
        "asserted_in": "torture",
        "confidence": "high",
    }


def main(root, name, number):
    with jidomem.open(root, wait=60) as memory:
        for n in range(int(number)):
            both = memory.writer.submit_many("p", [half(name, n, "left"), half(name, n, "right")], atomic=True)
            print(*[receipt.iri for receipt in both], flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
