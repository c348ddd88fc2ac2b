"""`python -m foul`."""

from foul.cli.app import main

main()
