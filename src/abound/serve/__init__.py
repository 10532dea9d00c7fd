"""Serve: the command line and the server."""
