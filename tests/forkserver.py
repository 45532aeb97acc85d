"""Processes that tests fork from one server, which imports what they need once."""

import multiprocessing

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.preload"])
