"""Whole experiments: several seeds, requests and methods, resumable, compared with Retrain."""
