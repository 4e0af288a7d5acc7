#!/usr/bin/python3
"""Has the kernel hold back the pods where their swapping slows down the disks of the system.

Writes how fast a disk must answer to system.slice and to kubepods.slice, for every disk behind the root file system
and behind swap. The files are below /run: disks may have other names at the next start, and then this runs anew.
"""
import os
import re
import subprocess
import sys
import time

ROOT = os.environ.get("ADVISOR_ROOT", "/")
RETRY_SECONDS = float(os.environ.get("ADVISOR_RETRY_SECONDS", "1"))
ATTEMPTS = 5
TARGETS = {"system.slice": 5, "kubepods.slice": 50}  # milliseconds


def under_root(path):
    return os.path.join(ROOT, path.lstrip("/"))


def table(path):
    """The lines of a table of the kernel as fields, in which blanks and the like are written as octal numbers."""
    with open(under_root(path), encoding="utf-8", errors="surrogateescape") as file:
        lines = [line.split() for line in file if line.strip()]
    return [[re.sub(r"\\([0-7]{3})", lambda match: chr(int(match.group(1), 8)), field) for field in line]
            for line in lines]


def kernel_name(device):
    """sda4 for /dev/disk/by-label/root; in /sys a slash of the name is an exclamation mark."""
    real = os.path.relpath(os.path.realpath(under_root(device)), os.path.realpath(under_root("/dev")))
    return real.replace("/", "!")


def physical_disks(name):
    """The disks below a partition, a logical volume, an encrypted volume or a RAID; nothing for loop and zram."""
    folder = under_root(f"/sys/class/block/{name}")
    try:
        slaves = os.listdir(os.path.join(folder, "slaves"))
    except OSError:
        slaves = []
    if slaves:
        return set().union(*(physical_disks(slave) for slave in slaves))
    if os.path.exists(os.path.join(folder, "partition")):
        # The folder of a partition is in the folder of its disk, whatever the two are called.
        return physical_disks(os.path.basename(os.path.dirname(os.path.realpath(folder))))
    return {name} if os.path.exists(os.path.join(folder, "device")) else set()


def mount_source(path, mounts):
    """The device mounted at the path or above it, None where that is no device (overlay, tmpfs)."""
    best = None
    for source, point, *_ in mounts:
        inside = point == "/" or path == point or path.startswith(f"{point}/")
        # Of two at the same place the later one counts.
        if inside and (best is None or len(point) >= len(best[1])):
            best = (source, point)
    return best[0] if best and best[0].startswith("/dev/") else None


def wanted_devices():
    mounts = table("/proc/mounts")
    # Where / is an image (composefs), the disk is behind /sysroot and /var.
    devices = {mount_source(path, mounts) for path in ("/", "/sysroot", "/var")}
    for name, kind, *_ in table("/proc/swaps")[1:]:
        if re.match(r"/dev/zram[0-9]", name):
            continue  # memory, not a disk
        devices.add(name if kind == "partition" else mount_source(name, mounts))
    return devices - {None}


def write_drop_in(slice_name, milliseconds, disks):
    folder = under_root(f"/run/systemd/system/{slice_name}.d")
    os.makedirs(folder, mode=0o755, exist_ok=True)
    path = os.path.join(folder, "20-io-latency.conf")
    lines = ["# The disks behind the root file system and swap, found at the start of the machine.", "[Slice]"]
    lines += [f"IODeviceLatencyTargetSec=/dev/{disk.replace('!', '/')} {milliseconds}ms" for disk in disks]
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    os.chmod(f"{path}.new", 0o644)
    os.replace(f"{path}.new", path)


def missing_in_kernel(slice_name, milliseconds, disks):
    """The disks without the target in the kernel, None where the kernel does not show targets for the slice."""
    try:
        shown = table(f"/sys/fs/cgroup/{slice_name}/io.latency")
    except OSError:
        return None
    numbers = {disk: table(f"/sys/class/block/{disk}/dev")[0][0] for disk in disks}
    return [disk for disk in disks if [numbers[disk], f"target={milliseconds * 1000}"] not in shown]


def check(slice_name, milliseconds, disks):
    # systemd hands values to the kernel after it has answered, so they may come a moment later.
    for attempt in range(ATTEMPTS):
        missing = missing_in_kernel(slice_name, milliseconds, disks)
        if missing is None:
            print(f"{slice_name}: written; the kernel shows no targets, maybe the slice has not started")
            return True
        if not missing:
            print(f"{slice_name}: {milliseconds} ms for {', '.join(disks)}")
            return True
        if attempt < ATTEMPTS - 1:
            time.sleep(RETRY_SECONDS)
    print(f"{slice_name}: {milliseconds} ms is not in effect for {', '.join(missing)}", file=sys.stderr)
    return False


def main():
    disks = sorted(set().union(*(physical_disks(kernel_name(device)) for device in wanted_devices())))
    if not disks:
        print("warning: no disk was found behind the root file system or swap, nothing was written", file=sys.stderr)
        return 0
    for slice_name, milliseconds in TARGETS.items():
        write_drop_in(slice_name, milliseconds, disks)
    try:
        subprocess.run(["systemctl", "daemon-reload"], stdin=subprocess.DEVNULL, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        print(f"the files are written but not in effect, systemctl daemon-reload failed: {error}", file=sys.stderr)
        return 1
    return 0 if all([check(name, milliseconds, disks) for name, milliseconds in TARGETS.items()]) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, ValueError) as fault:
        print(f"the targets for disks are not (all) written: {fault}", file=sys.stderr)
        sys.exit(1)
