#!/usr/bin/python3
"""Shuts down all virtual machines of this node.

Usage: vm-drain-shut-down-vms.py SECONDS

Every running domain of every VM pod is asked to shut down, and then this waits until none of them is alive or the
seconds are over. No command that hangs keeps another VM from being asked: pods are handled in parallel, each command
has a limit, and one deadline ends it all.

Exit codes: 0 all VMs are down (or stopped by SIGTERM), 3 not all VMs were seen to be down.
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

COMMAND_SECONDS = float(os.environ.get("ADVISOR_COMMAND_SECONDS", "10"))
POLL_SECONDS = float(os.environ.get("ADVISOR_POLL_SECONDS", "2"))
PARALLEL = 32
ATTEMPTS = 4  # failures in a row after which a pod is given up
# libvirt of a pod that does not run as root, and of one that does. virsh finds neither of them by itself.
LIBVIRTS = ("qemu+unix:///session?socket=/var/run/libvirt/virtqemud-sock", "qemu:///system")
LISTING = "the list of VM pods"
CRICTL = ["crictl", f"--timeout={max(1, int(COMMAND_SECONDS))}s"]
PODS = CRICTL + ["pods", "--label", "kubevirt.io=virt-launcher", "--state", "ready", "-o", "json"]
CONTAINERS = CRICTL + ["ps", "--state", "running", "-o", "json"]
STOPPING = threading.Event()  # tells the threads not to begin anything any more


def log(text):
    print(text, file=sys.stderr, flush=True)


def run(command, deadline):
    """What the command printed; None where it failed or hung, which is logged and never ends anything else."""
    if STOPPING.is_set() or time.monotonic() >= deadline:
        return None
    limit = min(time.monotonic() + COMMAND_SECONDS, deadline)
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            errors="replace", start_new_session=True)
    except OSError as error:
        log(f"{' '.join(command)}: {error}")
        return None
    while True:
        try:
            output, errors = process.communicate(timeout=0.25)
            break
        except subprocess.TimeoutExpired:
            if not STOPPING.is_set() and time.monotonic() < limit:
                continue
        # Its children as well: one that holds the pipe would have us wait for it.
        os.killpg(process.pid, signal.SIGKILL)
        try:
            process.communicate(timeout=1)
        except subprocess.TimeoutExpired:
            pass  # it hangs in the kernel, so it is left behind
        log(f"{' '.join(command)}: ended, it took too long")
        return None
    if process.returncode != 0:
        log(f"{' '.join(command)}: exit code {process.returncode}: {errors.strip()}")
        return None
    return output


def vm_containers(pool, deadline):
    """The ids of the running containers "compute" of VM pods, None where they can't be listed."""
    outputs = list(pool.map(lambda command: run(command, deadline), (PODS, CONTAINERS)))
    if None in outputs:
        return None
    try:
        pods, containers = json.loads(outputs[0]), json.loads(outputs[1])
        ready = {pod["id"] for pod in pods.get("items") or [] if pod["state"] == "SANDBOX_READY"}
        return sorted(
            container["id"] for container in containers.get("containers") or []
            if container["podSandboxId"] in ready and container["state"] == "CONTAINER_RUNNING"
            and container["metadata"]["name"] == "compute")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        log(f"the answer of crictl is not understood: {error!r}")
        return None


def virsh(container, pod, deadline, *arguments):
    return run(CRICTL + ["exec", container, "virsh", "-c", LIBVIRTS[pod["libvirt"]], *arguments], deadline)


def domains(container, pod, deadline):
    """The active domains of the container with their states, None where they can't be listed."""
    output = virsh(container, pod, deadline, "list")
    lines = [line.split() for line in (output or "").splitlines() if line.strip()]
    if not lines or lines[0][:2] != ["Id", "Name"]:
        # The next attempt is with the other one.
        pod["libvirt"] = 1 - pod["libvirt"]
        return None
    return {fields[1]: " ".join(fields[2:]) for fields in lines[1:] if len(fields) > 2}


def shut_down(container, pod, deadline):
    """Asks every running domain of the pod that was not asked yet. pod["asked"] keeps those that are alive.

    True while one that was asked is alive, False when there is none, None where that is not known.
    """
    states = domains(container, pod, deadline)
    if states is None:
        return None
    pod["asked"].intersection_update(states)
    failed = False
    for name, state in sorted(states.items()):
        if state != "running" or name in pod["asked"]:
            continue
        if virsh(container, pod, deadline, "shutdown", name) is None:
            failed = True
        else:
            log(f"{name}: asked to shut down")
            pod["asked"].add(name)
    return True if pod["asked"] else None if failed else False


def waited_for(pods, name):
    """The domains of the pod that were asked and are not known to be down."""
    return sorted(pods[name]["asked"]) if name in pods else []


def one_round(pool, pods, given_up, deadline):
    """Handles all pods once. The answers of shut_down by container, and of the list (None: it failed)."""
    found = vm_containers(pool, deadline)
    # Where there is no list, the containers of the last one are handled.
    containers = [name for name in (sorted(pods) if found is None else found) if name not in given_up]
    for name in containers:
        pods.setdefault(name, {"asked": set(), "libvirt": 0})
    answers = pool.map(lambda name: shut_down(name, pods[name], deadline), containers)
    return {**dict(zip(containers, answers)), LISTING: None if found is None else False}


def drain(deadline):
    """Shuts down all VMs. False where not all of them were seen to be down at the deadline."""
    if shutil.which("crictl") is None:
        log("crictl is missing: the VMs of this node can't be found and are not shut down")
        return False
    pods, failures, given_up, waiting = {}, {}, set(), [LISTING]
    with ThreadPoolExecutor(PARALLEL) as pool:
        try:
            while time.monotonic() < deadline:
                answers = one_round(pool, pods, given_up, deadline)
                for name, answer in answers.items():
                    failures[name] = failures.get(name, 0) + 1 if answer is None else 0
                    if answer is not None:
                        given_up.discard(name)
                    # A VM that was asked is waited for even where it can't be looked at.
                    elif failures[name] >= ATTEMPTS and name not in given_up and not waited_for(pods, name):
                        given_up.add(name)
                        log(f"{name}: given up after {ATTEMPTS} failures")
                waiting = [name for name, answer in answers.items() if answer is not False and name not in given_up]
                if not waiting:
                    return not given_up
                time.sleep(max(0, min(POLL_SECONDS, deadline - time.monotonic())))
        finally:
            STOPPING.set()
    for name in waiting:
        log(f"time is up, still there: {name} {' '.join(waited_for(pods, name))}".rstrip())
    return False


def main():
    if len(sys.argv) != 2:
        log("usage: vm-drain-shut-down-vms.py SECONDS")
        return 2
    deadline = time.monotonic() + float(sys.argv[1])
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    if not drain(deadline):
        return 3
    log("all VMs of this node are down")
    return 0


if __name__ == "__main__":
    sys.exit(main())
