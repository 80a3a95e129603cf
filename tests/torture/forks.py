"""Processes that are forks of one that has loaded a writer."""

import multiprocessing
import os

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["jidomem.runtime.root", "jidomem.schema.shacl_compiler"])


def _run(main, output, arguments):
    for stream in (1, 2):
        os.dup2(output.fileno(), stream)
    main(*arguments)


class Fork:
    """A process that runs *main*; `output` is what it prints."""

    def __init__(self, main, *arguments):
        reader, writer = FORKS.Pipe(duplex=False)
        self._process = FORKS.Process(target=_run, args=(main, writer, arguments))
        self._process.start()
        writer.close()
        self.output = os.fdopen(os.dup(reader.fileno()), "rb")
        reader.close()

    def is_running(self):
        return self._process.is_alive()

    def kill(self):
        self._process.kill()

    def end(self):
        """Wait for the end; return the rest of the output, and the exit code."""
        with self.output:
            rest = self.output.read()
        self._process.join()
        return rest, self._process.exitcode
