"""Client side: everything that sees data. Named tasks and the worker that performs them."""
