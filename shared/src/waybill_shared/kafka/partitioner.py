"""The partition of a key: murmur2, as Java's producers compute it, and ours (`kafka.clients`)."""

from typing import Final

SEED: Final = 0x9747B28C
MULTIPLIER: Final = 0x5BD1E995
WORD: Final = 0xFFFFFFFF
POSITIVE: Final = 0x7FFFFFFF


def partition_of(key: str, partitions: int) -> int:
    return (_murmur2(key.encode()) & POSITIVE) % partitions


def _murmur2(data: bytes) -> int:
    state = SEED ^ len(data)
    whole = len(data) - len(data) % 4
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * MULTIPLIER & WORD
        word = (word ^ word >> 24) * MULTIPLIER & WORD
        state = state * MULTIPLIER & WORD ^ word
    if whole < len(data):
        state = (state ^ int.from_bytes(data[whole:], "little")) * MULTIPLIER & WORD
    state = (state ^ state >> 13) * MULTIPLIER & WORD
    return state ^ state >> 15
