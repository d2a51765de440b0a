#!/usr/bin/env python3
"""Split a text into words and punctuation marks, one token per line.

    python3 make_tokens.py english.txt > english.tokens.txt

A word keeps its apostrophe ("mother's"); case is kept; white space only
separates. Needs nothing beyond the standard library.
"""
import re
import sys

TOKEN = re.compile(r"\w+(?:'\w+)*|[^\w\s]")


def main():
    with open(sys.argv[1], encoding="utf-8") as text:
        for token in TOKEN.findall(text.read()):
            print(token)


if __name__ == "__main__":
    main()
