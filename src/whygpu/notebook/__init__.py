"""whygpu in a notebook: answers as HTML, the magic commands, and explained exceptions."""
