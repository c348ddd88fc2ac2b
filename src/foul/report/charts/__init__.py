"""Charts: each a function that returns a matplotlib figure, for a page and for a file alike."""
