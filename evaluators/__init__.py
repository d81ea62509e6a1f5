"""Extraction, grading and metrics for vision-language models."""
