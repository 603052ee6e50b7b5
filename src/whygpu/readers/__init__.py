"""From text to typed evidence."""
