"""Views of arrays and files: samples, pictures, the terminal, pages."""
