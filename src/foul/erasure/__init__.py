"""Erasure as an engineer lives it: request, plan, run, verify, receipt, and nothing left behind."""
