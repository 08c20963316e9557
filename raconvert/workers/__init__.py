"""Worker processes: started, fed, watched and ended."""
