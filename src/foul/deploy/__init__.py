"""Set a federation up on real machines: certificates, keys, processes, the door to the outside."""
