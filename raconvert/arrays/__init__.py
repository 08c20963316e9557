"""RA in memory: arrays, bundles, metadata, and operations on their elements and axes."""
