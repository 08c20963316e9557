"""What lies beside a file: the sidecar, its YAML, and the way back."""
