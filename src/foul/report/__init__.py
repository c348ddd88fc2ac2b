"""Tables and pictures of what was measured."""
