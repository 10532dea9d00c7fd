"""Compare: learners side by side on one data set, measured alike, and which of them to take."""
