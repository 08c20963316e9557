"""RA in memory: arrays, bundles, metadata, and what is done to elements and axes."""
