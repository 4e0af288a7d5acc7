#!/usr/bin/python3
"""Switches on one swap partition or swap file, where the machine has it and its kubelet can live with it.

Usage: kubevirt-swap-on.py PATH PRIORITY

Nothing to do (no such partition or file, in use already, a kubelet that refuses swap) is a success. Whatever happens
here, the machine starts: the units that call this are wanted by the kubelet, not required.
"""
import os
import re
import stat
import subprocess
import sys

ROOT = os.environ.get("ADVISOR_ROOT", "/")
DROP_INS = "/etc/openshift/kubelet.conf.d"


def under_root(path):
    return os.path.join(ROOT, path.lstrip("/"))


def run(*command, seconds):
    """The exit code and the output of a command; a command that is missing or hangs has failed."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=seconds, text=True, errors="replace")
        return done.returncode, done.stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        return 1, str(error)


def active_swap():
    """The names of /proc/swaps, in which blanks and the like are written as octal numbers."""
    with open(under_root("/proc/swaps"), encoding="utf-8", errors="surrogateescape") as swaps:
        names = [line.split()[0] for line in swaps.readlines()[1:] if line.strip()]
    return [re.sub(r"\\([0-7]{3})", lambda match: chr(int(match.group(1), 8)), name) for name in names]


def is_active(path):
    # The kernel lists devices by their real names, not by their labels.
    real_root = os.path.realpath(ROOT)
    real_name = "/" + os.path.relpath(os.path.realpath(under_root(path)), real_root)
    return real_name in active_swap()


def what_is_wrong_with_file(path):
    """Why a swap file must not be used, None where it may.

    Everybody may write to /var/tmp, so the file could be somebody's trap, and whoever may read a swap file reads the
    memory of virtual machines.
    """
    status = os.lstat(under_root(path))
    if stat.S_ISLNK(status.st_mode):
        return "it is a symbolic link"
    if not stat.S_ISREG(status.st_mode):
        return "it is not a regular file"
    if status.st_uid != os.geteuid():
        return f"it belongs to user {status.st_uid} and not to {os.geteuid()}"
    if status.st_mode & 0o077:
        return f"others have access to it (mode {stat.S_IMODE(status.st_mode):o}, wanted is 600)"
    return None


def main():
    if len(sys.argv) != 3 or not sys.argv[1].startswith("/") or not re.fullmatch(r"[0-9]{1,5}", sys.argv[2]):
        print("usage: kubevirt-swap-on.py PATH PRIORITY", file=sys.stderr)
        return 2
    path, priority = sys.argv[1:]
    is_device = path.startswith("/dev/")
    if is_device and not os.path.exists(under_root(path)):
        # Links to partitions appear when udev has seen them. Its failure is no reason to stop: we look again.
        run("udevadm", "settle", "--timeout=30", seconds=35)
    if not os.path.lexists(under_root(path)) or (is_device and not os.path.exists(under_root(path))):
        print(f"there is no {path}: nothing to switch on")
        return 0
    if is_active(path):
        print(f"{path} is in use already")
        return 0
    # A kubelet that does not read the file with the settings for swap may refuse to start beside swap.
    code, unit = run("systemctl", "cat", "kubelet.service", seconds=20)
    if code != 0 or DROP_INS not in unit:
        print(f"the kubelet of this release does not read {DROP_INS}: {path} stays off")
        return 0
    wrong = None if is_device else what_is_wrong_with_file(path)
    if wrong:
        print(f"{path} stays off: {wrong}", file=sys.stderr)
        return 1
    code, output = run("swapon", "--priority", priority, under_root(path), seconds=60)
    # What counts is the kernel's list, and not what swapon said: somebody else may have been faster.
    if not is_active(path):
        print(f"{path} stays off: swapon ended with {code}: {output.strip()} (is it formatted with mkswap?)",
              file=sys.stderr)
        return 1
    print(f"{path} is in use")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as fault:
        print(f"swap was left as it is: {fault}", file=sys.stderr)
        sys.exit(1)
