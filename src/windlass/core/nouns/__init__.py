"""The six nouns, the project and the event: frozen values that know their own steps."""
