"""Files in a browser on the same machine: what they hold, each array, and what it would become."""
