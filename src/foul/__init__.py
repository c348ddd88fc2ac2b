"""Federated learning that can forget."""

from importlib.metadata import version

__version__ = version("foul")
