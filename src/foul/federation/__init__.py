"""Server side: engines, rounds, averaging, costs."""
