"""Files as people have them, shown in the six ways in which people see them."""
