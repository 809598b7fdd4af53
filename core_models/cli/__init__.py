"""The command line: one module for each verb, over the same functions that the page calls.

A verb module holds ``HELP``, ``add_arguments(parser)`` and ``run(arguments, output)``. It imports
the core inside ``run``, so that ``--help`` answers at once.
"""
