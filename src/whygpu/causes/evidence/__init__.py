"""What several causes read from a snapshot, a log or a program: one module per kind of evidence."""
