"""The commands of ``abound``: each turns its options into one call and prints the answer.

Nothing heavy is imported here before a command runs, so that ``abound --help`` answers at once.
"""
