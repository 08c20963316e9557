"""Pages and cells of notebooks: of a file, an array, a folder, a comparison."""
