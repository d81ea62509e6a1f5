"""A reader of pictures that shares nothing with their drawer but the font: classical image work.

It proves what the drawer promises: the pixels alone determine the instance.
"""
