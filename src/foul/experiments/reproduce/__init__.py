"""Every table and figure of the paper as one command: a plan each, all run by the same studies."""
