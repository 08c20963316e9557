"""Pictures of the pages, and the program that draws them."""
