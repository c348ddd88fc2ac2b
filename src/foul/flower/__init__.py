"""The engine for several machines: Flower carries the messages, the methods stay the same."""
