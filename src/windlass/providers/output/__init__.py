"""Reading the output of programs: lines as events, words as troubles, tokens as prices."""
