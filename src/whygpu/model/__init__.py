"""The nouns of whygpu: frozen values without I/O, importing nothing else of ours."""
