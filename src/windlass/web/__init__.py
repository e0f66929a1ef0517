"""The JSON API and the event stream, by noun. Thin: parse, one verb, encode."""
