"""Runs on disk: atomic files, checkpoints, the run folder."""
