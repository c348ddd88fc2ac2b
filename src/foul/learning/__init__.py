"""The learning stage: objectives, local training, rounds."""
