"""`foul erase`: one file per verb."""
