"""whygpu's part in the process of a program: Python 3.6, standard library only.

Any failure in here is noted in the record of the process, and the program goes on without it.
"""


def start() -> None:
    """Called once at the start of every Python process below `whygpu run`."""
    from whygpu_bootstrap import settings

    folder = settings.report_folder()
    if folder is None:
        return
    from whygpu_bootstrap import process_record

    process_record.open_in(folder)
    with process_record.noted("the start of whygpu's part"):
        from whygpu_bootstrap import frameworks

        frameworks.install(settings.load())
