"""Text to sparse vectors, and words to the features of their neighbours."""

from abound.vectorise.text import TextVectorizer

__all__ = ["TextVectorizer"]
