"""One conversion, one module per stage: inputs, read, combine, losses, write, commit, report."""
