"""`foul federation`: one file per verb."""
