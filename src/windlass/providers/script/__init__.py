"""What the scripted provider needs: the parser of scripts, and the program that plays them."""
