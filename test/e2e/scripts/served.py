# SPDX-License-Identifier: Apache-2.0
"""A module with a function that answers a request (calls.py)."""


def serve_one(n):
    return helper(n) + 1


def helper(n):
    return n + 1
