#!/usr/bin/python3
"""Huge pages for those who ask for them (QEMU does), collected faster than the kernel does it by itself.

Programs that don't ask for huge pages don't get them, so they don't hold more memory than they use. khugepaged looks
at 130,000 pages, then pauses: the more memory a machine has, the shorter.
"""
import os
import re
import sys

ROOT = os.environ.get("ADVISOR_ROOT", "/")
THP = os.path.join(ROOT, "sys/kernel/mm/transparent_hugepage")


def memory_gb():
    with open(os.path.join(ROOT, "proc/meminfo"), encoding="utf-8") as file:
        match = re.search(r"^MemTotal:\s+([0-9]+) kB", file.read(), flags=re.MULTILINE)
    if not match:
        raise ValueError("/proc/meminfo shows no MemTotal")
    return max(1, int(match.group(1)) // 2**20)


def set_value(name, value):
    """False where the kernel has the value but did not take ours."""
    path = os.path.join(THP, name)
    if not os.path.exists(path):
        print(f"warning: this kernel has no {name}, it is skipped", file=sys.stderr)
        return True
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"{value}\n")
        with open(path, encoding="utf-8") as file:
            now = file.read().strip()
    except OSError as error:
        print(f"{name} was left as it is: {error}", file=sys.stderr)
        return False
    # A choice reads as all its words with the chosen one in brackets: always [madvise] never
    chosen = re.search(r"\[(\w+)\]", now)
    if (chosen.group(1) if chosen else now) != str(value):
        print(f"{name} reads {now!r} after {value} was written", file=sys.stderr)
        return False
    print(f"{name} is {value}")
    return True


def main():
    pause = 1000 + 64000 // memory_gb()
    values = {"enabled": "madvise", "khugepaged/pages_to_scan": 130000, "khugepaged/scan_sleep_millisecs": pause}
    # Each is of use without the others, so one that fails does not stop the rest.
    return 0 if all([set_value(name, value) for name, value in values.items()]) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, ValueError) as fault:
        print(f"{fault}; the settings for huge pages were left as they are", file=sys.stderr)
        sys.exit(1)
