"""A writer process: prints each key it sends and each acknowledgement, until it is done or killed.

python submitter.py ROOT NAME COUNT THREADS [FIRST]
"""

import sys
import threading

import jidomem


def proposal(key):
    """The intent with the idempotency key *key*; a retry sends the same."""
    return {
        "type": "fact",
        "summary": f"what {key} found",
        "applies_to_project": "p",
        "asserted_by": "worker",
        "asserted_in": "torture",
        "confidence": "high",
        "idempotency_key": key,
    }


def work(memory, name, number, n=0):
    """Submit the intents from *n* up to *number*, sometimes three together, with a line before and after each."""
    while n < number:
        batch = [f"{name}-{n + k}" for k in range(min(3 if n % 4 == 3 else 1, number - n))]
        n += len(batch)
        sys.stdout.write("".join(f"send {key}\n" for key in batch))
        sys.stdout.flush()
        receipts = memory.writer.submit_many("p", [proposal(key) for key in batch])
        sys.stdout.write("".join(f"stored {key} {receipt.iri}\n" for key, receipt in zip(batch, receipts, strict=True)))
        sys.stdout.flush()


def main(root, name, number, threads, first="0"):
    with jidomem.open(root, wait=60) as memory:
        workers = [
            threading.Thread(target=work, args=(memory, f"{name}.{t}", int(number), int(first)))
            for t in range(int(threads))
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
