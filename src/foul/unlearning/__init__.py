"""Unlearning methods: one file each, behind one interface."""
