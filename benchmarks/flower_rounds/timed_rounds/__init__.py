"""A Flower app that only measures how long rounds take."""
