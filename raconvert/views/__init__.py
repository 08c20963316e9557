"""What arrays and files look like: samples, pictures, the terminal, pages."""
