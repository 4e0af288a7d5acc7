#!/usr/bin/python3
"""Holds back the shutdown of the node until its virtual machines are shut down, as long as logind permits.

Takes a delay lock of logind, waits for the signal PrepareForShutdown, has vm-drain-shut-down-vms.py (beside this file)
shut down the VMs, and lets go of the lock, whatever has happened.

Whoever shuts down the node has cordoned it before, else VMs may be started here again.

Exit codes: 0 all VMs are down (or stopped by SIGTERM), 1 the lock is lost or refused, 3 not all VMs were shut down.
"""
import json
import os
import queue
import select
import signal
import subprocess
import sys
import threading
import time

RETRY_SECONDS = float(os.environ.get("ADVISOR_RETRY_SECONDS", "2"))
CHECK_SECONDS = 30  # how often logind is asked, should a signal have been missed
DEFAULT_DELAY = 150  # InhibitDelayMaxSec of our drop-in
# Of the time that logind gives: when the last VM must be down, and when the drain is ended by force.
DRAIN_PART, FORCE_PART = 0.9, 0.95
DRAIN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "vm-drain-shut-down-vms.py")
LOGIND = ("org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager")
LOCK = ["systemd-inhibit", "--what=shutdown", "--mode=delay", "--who=vm-shutdown-hook", "--why=vm-drain", "cat"]
MATCH = f"type='signal',path='{LOGIND[1]}',interface='{LOGIND[2]}',member='PrepareForShutdown'"
MONITOR = ["busctl", "monitor", "--json=short", f"--match={MATCH}"]
# The lines of the monitor, None when it has ended, and an empty one to wake us up.
LINES = queue.SimpleQueue()
STOPPED = []  # the signals that asked us to stop


def log(text):
    print(text, file=sys.stderr, flush=True)


def stop(number, _):
    # Nothing is raised here, as that could hit just when a process is started, which would then be left behind.
    STOPPED.append(number)
    LINES.put("")


def take_lock():
    """systemd-inhibit around a cat that ends when our end of its pipe is closed: the lock does not outlive us."""
    lock = subprocess.Popen(LOCK, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    try:
        lock.stdin.write(b"held\n")
        # cat runs, and so answers, only while the lock is held.
        if select.select([lock.stdout], [], [], 10)[0] and lock.stdout.readline() == b"held\n":
            return lock
    except OSError:
        pass
    release(lock)
    return None


def release(lock):
    try:
        lock.stdin.close()
    except OSError:
        pass
    try:
        lock.wait(timeout=3)
    except subprocess.TimeoutExpired:
        lock.kill()
        lock.wait()


def logind_property(name):
    """The value without its type: of "b true" it is true. None where it can't be read."""
    try:
        done = subprocess.run(
            ["busctl", "get-property", *LOGIND, name], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=10,
            check=True, text=True)
        return done.stdout.split()[1]
    except (OSError, subprocess.SubprocessError, IndexError) as error:
        log(f"{name} of logind can't be read: {error}")
        return None


def inhibit_delay():
    value = logind_property("InhibitDelayMaxUSec")
    if value is None or not value.isdigit():
        log(f"logind does not tell how long it waits: {DEFAULT_DELAY} seconds are assumed")
        return DEFAULT_DELAY
    delay = int(value) / 1000000
    if delay < DEFAULT_DELAY:
        log(f"logind waits {delay:g} seconds only and not {DEFAULT_DELAY}, VMs may need longer")
    return delay


def signal_value(line):
    """What a line of the monitor says about the shutdown: True, False, or None for anything else."""
    try:
        message = json.loads(line)
        if message["member"] == "PrepareForShutdown" and isinstance(message["payload"]["data"][0], bool):
            return message["payload"]["data"][0]
    except (ValueError, KeyError, IndexError, TypeError):
        pass
    return None


def follow(monitor):
    for line in monitor.stdout:
        LINES.put(line)
    LINES.put(None)


def next_line(seconds):
    """A line of the monitor, None where it has ended, an empty one where there was none in time."""
    try:
        return LINES.get(timeout=seconds)
    except queue.Empty:
        return ""


def watch(lock):
    """Returns the moment since which a shutdown may be under way, None where the lock is lost or we are to stop."""
    quiet, ends = time.monotonic(), 0
    while not STOPPED:
        monitor = subprocess.Popen(MONITOR, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        threading.Thread(target=follow, args=(monitor,), daemon=True).start()
        try:
            # A signal from before the monitor listens is not seen, so logind is asked soon after its start.
            patience, line = 1, ""
            while line is not None:
                line = next_line(patience)
                if STOPPED:
                    return None
                moment = time.monotonic()
                if line:
                    value = signal_value(line)
                    # Everybody may send such a signal, so logind is asked. Where it does not answer, the signal counts.
                    if value and logind_property("PreparingForShutdown") != "false":
                        return moment
                    if value is not None:
                        log(f"no shutdown is under way, the signal said {str(value).lower()}: ignored")
                    continue
                if lock.poll() is not None:
                    log("the lock is lost, systemd-inhibit has ended")
                    return None
                if logind_property("PreparingForShutdown") == "true":
                    return quiet
                quiet, patience = moment, CHECK_SECONDS
                ends = 0 if line is not None else ends + 1
        finally:
            monitor.kill()
            monitor.wait()
        log("the monitor of the bus has ended and is started again")
        next_line(min(30, RETRY_SECONDS * ends))
    return None


def drain(started, delay):
    """Has the VMs shut down. 0 where all are down, 3 where not, or where this had to be ended."""
    process = subprocess.Popen([sys.executable, DRAIN, str(started + delay * DRAIN_PART - time.monotonic())],
                               stdin=subprocess.DEVNULL)
    while process.poll() is None and not STOPPED:
        if time.monotonic() > started + delay * FORCE_PART:
            log("the drain has not come to its end in time")
            break
        time.sleep(0.1)
    if process.poll() is None:
        process.terminate()
    return 0 if STOPPED or process.returncode == 0 else 3


def main():
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    lock = take_lock()
    if lock is None:
        log("logind did not give the lock: VMs of this node would not be shut down with it")
        return 1
    try:
        delay = inhibit_delay()
        log(f"ready, VMs have {delay * DRAIN_PART:g} seconds to shut down before the node")
        started = watch(lock)
        if started is None:
            return 0 if STOPPED else 1
        log("the node shuts down, its VMs are asked to do so")
        return drain(started, delay)
    finally:
        release(lock)
        log("the lock is released")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as fault:
        log(f"{fault}: VMs of this node are not shut down with it")
        sys.exit(1)
