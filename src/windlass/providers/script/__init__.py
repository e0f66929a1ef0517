"""The parser of scripts, and the program that plays them."""
