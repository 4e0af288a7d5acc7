#!/usr/bin/python3
"""Has the kernel merge pages of zeros, and nothing but pages of zeros.

Merging equal pages of different virtual machines lets one of them find out what is in the memory of another, so
merging starts only behind the switch for zero pages: it must exist and read back as 1.

The pace: 1000 pages, then a pause of 50 ms up to 512 GB (20,000 pages a second, 112 minutes for 512 GB). Above that the
pause is shorter, so that a pass through all memory still takes 112 minutes, down to 10 ms.
"""
import os
import re
import sys

ROOT = os.environ.get("ADVISOR_ROOT", "/")
KSM = os.path.join(ROOT, "sys/kernel/mm/ksm")
SWITCH = "redhat_only_zero_pages"


class Fault(Exception):
    """A message for the journal."""


def memory_gb():
    with open(os.path.join(ROOT, "proc/meminfo"), encoding="utf-8") as file:
        match = re.search(r"^MemTotal:\s+([0-9]+) kB", file.read(), flags=re.MULTILINE)
    if not match:
        raise Fault("/proc/meminfo shows no MemTotal")
    return max(1, int(match.group(1)) // 2**20)


def read(name):
    with open(os.path.join(KSM, name), encoding="utf-8") as file:
        return file.read().strip()


def write(name, value):
    try:
        with open(os.path.join(KSM, name), "w", encoding="utf-8") as file:
            file.write(f"{value}\n")
        now = read(name)
    except OSError as error:
        raise Fault(f"{name} can't be set: {error}") from error
    if now != str(value):
        raise Fault(f"{name} reads {now!r} after {value} was written")


def main():
    if not os.path.exists(os.path.join(KSM, "run")):
        print("this kernel can't merge pages: nothing to do")
        return 0
    if not os.path.exists(os.path.join(KSM, SWITCH)):
        print(f"this kernel has no {SWITCH}: merging is not started, nothing was changed")
        return 0
    pause = max(10, min(50, 25600 // memory_gb()))
    # The switch is first and merging last, so that whatever fails in between, full merging is never started.
    write(SWITCH, 1)
    write("pages_to_scan", 1000)
    write("sleep_millisecs", pause)
    if read(SWITCH) != "1":
        raise Fault(f"{SWITCH} did not stay 1")
    write("run", 1)
    print(f"pages of zeros are merged, 1000 pages every {pause} ms")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Fault, OSError) as fault:
        print(f"{fault}; merging was not started here", file=sys.stderr)
        sys.exit(1)
