"""Processes that do the work of others: started, fed, watched and ended."""
