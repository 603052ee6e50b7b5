"""Knowledge as data: every row says where it comes from, and a test checks every table."""
