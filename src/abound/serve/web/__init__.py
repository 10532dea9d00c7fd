"""The server: requests in, rankings out."""
