import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

from fakes import NODE, PATIENCE, RootTest

INHIBITOR = os.path.join(NODE, "drain_shutdown_inhibitor/files/vm-drain-shutdown-inhibitor.py")
HOURS = "t 100000000000000"  # a delay that no test waits for

# Says when the lock is taken and when it is let go of.
SYSTEMD_INHIBIT = """
echo "taken $*" >> "$FAKE/log"
while [ "${1#--}" != "$1" ]; do shift; done
"$@"
echo released >> "$FAKE/log"
"""

# The monitor prints what a test puts into the pipe; a first one may be told to end at once.
BUSCTL = """
if [ "$1" = monitor ]; then
    if [ -e "$FAKE/monitor-ends" ]; then rm "$FAKE/monitor-ends"; exit 1; fi
    exec cat "$FAKE/bus"
fi
cat "$FAKE/$5"
"""

# A container is a folder, a domain is a file in it that holds its state. While there is a file hang-<container>, its
# commands hang, with a child that holds their output.
CRICTL = """
shift
echo "crictl $*" >> "$FAKE/log"
case "$1" in
pods) cat "$FAKE/pods.json" ;;
ps) cat "$FAKE/containers.json" ;;
exec)
    if [ -e "$FAKE/hang-$2" ]; then
        echo "hangs $2" >> "$FAKE/log"
        (while [ -e "$FAKE/hang-$2" ]; do sleep 0.1; done)
        exit 1
    fi
    cd "$FAKE/domains/$2" || exit 1
    container=$2 uri=$5
    shift 5
    # libvirt of a pod that runs as root has another address.
    if [ -e "$FAKE/root-$container" ]; then wanted=qemu:///system; else wanted=qemu+unix:///session*; fi
    case "$uri" in $wanted) ;; *) exit 1 ;; esac
    echo "virsh $container $*" >> "$FAKE/log"
    if [ "$1" = list ]; then
        echo " Id   Name   State"
        echo "----------------------"
        for name in $(ls); do echo " 1    $name   $(cat "$name")"; done
    else
        if [ -e "$FAKE/refuses-$2" ]; then exit 1; fi
        if [ ! -e "$FAKE/stubborn-$2" ]; then rm "$2"; fi
    fi ;;
esac
"""


class Drain(RootTest):
    def setUp(self):
        super().setUp()
        self.command("systemd-inhibit", SYSTEMD_INHIBIT)
        self.command("busctl", BUSCTL)
        self.command("crictl", CRICTL)
        self.gave_up = False
        os.mkfifo(self.path("bus"))
        # Open for both, so that neither end waits for the other.
        self.bus = os.open(self.path("bus"), os.O_RDWR)
        self.addCleanup(os.close, self.bus)
        self.write("InhibitDelayMaxUSec", HOURS)
        self.write("PreparingForShutdown", "b false")
        # Commands never end by their limit, unless a test is about that.
        self.environment.update(ADVISOR_COMMAND_SECONDS="1000000", ADVISOR_POLL_SECONDS="0.05")
        self.pods()

    def pods(self, **containers):
        """Pods of one container each, with domains and their states."""
        pods = [{"id": f"pod-{name}", "state": "SANDBOX_READY"} for name in containers]
        running = [{"id": name, "podSandboxId": f"pod-{name}", "state": "CONTAINER_RUNNING",
                    "metadata": {"name": "compute"}} for name in containers]
        # These must be left alone: another container of a VM pod, and a pod that is no VM.
        running += [dict(container, id=f"side-{container['id']}", metadata={"name": "side"}) for container in running]
        running.append({"id": "web", "podSandboxId": "pod-web", "state": "CONTAINER_RUNNING",
                        "metadata": {"name": "compute"}})
        pods.append({"id": "pod-old", "state": "SANDBOX_NOTREADY"})
        running.append(dict(running[-1], id="old", podSandboxId="pod-old"))
        self.write("pods.json", json.dumps({"items": pods}))
        self.write("containers.json", json.dumps({"containers": running}))
        for container, domains in containers.items():
            for name, state in domains.items():
                self.write(f"domains/{container}/{name}", state)

    def start(self, script=INHIBITOR):
        process = subprocess.Popen(
            [sys.executable, script], env=self.environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
            text=True, bufsize=1, start_new_session=True)

        def kill():
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

        def give_up():
            self.gave_up = True
            kill()

        watchdog = threading.Timer(PATIENCE, give_up)
        watchdog.start()
        for cleanup in (process.stderr.close, process.wait, kill, watchdog.cancel):
            self.addCleanup(cleanup)
        return process

    def ready(self):
        process = self.start()
        self.wait_for_line(process, "ready")
        return process

    def wait_for_line(self, process, text):
        seen = ""
        for line in process.stderr:
            seen += line
            if text in line:
                return
        self.fail(f"no line with {text!r} in:\n{seen}")

    def wait_for_log(self, *lines):
        end = time.monotonic() + PATIENCE
        while not set(lines) <= set(self.log()):
            self.assertLess(time.monotonic(), end, f"{lines} not in {self.log()}")
            time.sleep(0.02)

    def signal(self, value, truth=None):
        self.write("PreparingForShutdown", f"b {str(value if truth is None else truth).lower()}")
        message = {"type": "signal", "member": "PrepareForShutdown", "payload": {"type": "b", "data": [value]}}
        os.write(self.bus, (json.dumps(message) + "\n").encode())

    def finish(self, process, code):
        rest = process.stderr.read()
        self.assertFalse(self.gave_up, f"it hangs, or has left a process behind:\n{rest}")
        self.assertEqual(process.wait(), code, rest)
        self.assertNotIn("Traceback", rest)
        self.assertIn("released", self.log())
        return rest

    def shutdowns(self):
        return sorted(line.split()[-1] for line in self.log() if line.startswith("virsh ") and " shutdown " in line)

    def test_all_vms_are_shut_down_before_the_lock_is_released(self):
        self.pods(a={"one": "running", "two": "running"}, b={"three": "running"})
        process = self.ready()
        self.assertEqual(self.log(), ["taken --what=shutdown --mode=delay --who=vm-shutdown-hook --why=vm-drain cat"])
        self.signal(True)
        self.finish(process, 0)
        self.assertEqual(self.shutdowns(), ["one", "three", "two"])
        self.assertEqual(self.log()[-1], "released")
        # Only the VMs' own containers were entered.
        entered = {line.split()[2] for line in self.log() if line.startswith("crictl exec")}
        self.assertEqual(entered, {"a", "b"})

    def test_no_vms(self):
        process = self.ready()
        self.signal(True)
        self.finish(process, 0)
        self.assertEqual(self.shutdowns(), [])

    def test_one_that_hangs_does_not_keep_others_from_being_asked(self):
        self.pods(a={"one": "running", "two": "running"}, b={"three": "running"}, c={"four": "running"})
        self.write("hang-b")
        process = self.ready()
        self.signal(True)
        # The command for b hangs from here on to the end of this wait.
        self.wait_for_log("hangs b", *(f"virsh {container} shutdown {name}"
                                       for container, name in (("a", "one"), ("a", "two"), ("c", "four"))))
        self.assertNotIn("released", self.log())
        os.remove(self.path("hang-b"))
        self.finish(process, 0)
        self.assertEqual(self.shutdowns(), ["four", "one", "three", "two"])

    def test_the_deadline_ends_a_drain_that_hangs(self):
        self.pods(a={"one": "running"}, b={"two": "running"})
        self.write("hang-a")
        self.write("hang-b")
        self.write("InhibitDelayMaxUSec", "t 3000000")
        process = self.ready()
        self.signal(True)
        self.finish(process, 3)
        self.assertEqual(self.shutdowns(), [])

    def test_a_drain_that_is_stuck_is_ended(self):
        script = self.path("bin/inhibitor.py")
        self.write("bin/vm-drain-shut-down-vms.py", "import time; time.sleep(1000000)")
        shutil.copy(INHIBITOR, script)
        self.write("InhibitDelayMaxUSec", "t 1000000")
        process = self.start(script)
        self.wait_for_line(process, "ready")
        self.signal(True)
        self.assertIn("not come to its end", self.finish(process, 3))

    def test_wrong_use(self):
        self.run_script("drain_shutdown_inhibitor/files/vm-drain-shut-down-vms.py", code=2)

    def test_a_vm_that_does_not_listen_is_waited_for_until_the_deadline(self):
        self.pods(a={"one": "running"})
        self.write("stubborn-one")
        self.write("InhibitDelayMaxUSec", "t 3000000")
        process = self.ready()
        self.signal(True)
        self.finish(process, 3)
        self.assertTrue(os.path.exists(self.path("domains/a/one")))

    def test_the_limit_of_a_command_ends_it_and_its_children(self):
        self.pods(a={"one": "running"})
        self.write("hang-a")
        self.environment["ADVISOR_COMMAND_SECONDS"] = "1"
        process = self.ready()
        self.signal(True)
        self.assertIn("given up after 4 failures", self.finish(process, 3))

    def test_a_domain_is_asked_once(self):
        self.pods(a={"one": "running"})
        self.write("stubborn-one")
        process = self.ready()
        self.signal(True)
        self.wait_for_log("virsh a shutdown one")
        while len([line for line in self.log() if line == "virsh a list"]) < 4:
            time.sleep(0.02)
        os.remove(self.path("domains/a/one"))
        self.finish(process, 0)
        self.assertEqual(self.shutdowns(), ["one"])

    def test_a_domain_that_refuses_does_not_stop_its_neighbour(self):
        self.pods(a={"one": "running", "two": "running"})
        self.write("refuses-one")
        process = self.ready()
        self.signal(True)
        self.finish(process, 3)
        # Asked again while its neighbour goes down, and then given up.
        self.assertEqual(self.shutdowns(), ["one"] * 5 + ["two"])
        self.assertFalse(os.path.exists(self.path("domains/a/two")))

    def test_a_pod_that_runs_as_root_has_another_libvirt(self):
        self.pods(a={"one": "running"}, b={"two": "running"})
        self.write("root-b")
        process = self.ready()
        self.signal(True)
        self.finish(process, 0)
        self.assertEqual(self.shutdowns(), ["one", "two"])

    def test_a_domain_that_is_paused_is_left_alone(self):
        self.pods(a={"one": "paused", "two": "running", "three": "in shutdown"})
        process = self.ready()
        self.signal(True)
        self.finish(process, 0)
        self.assertEqual(self.shutdowns(), ["two"])

    def test_a_container_that_ends_is_done(self):
        self.pods(a={"one": "running"})
        self.write("stubborn-one")
        process = self.ready()
        self.signal(True)
        self.wait_for_log("virsh a shutdown one")
        # Written beside and renamed, as crictl never shows one half.
        self.write("empty.json", '{"containers": null}')
        os.replace(self.path("empty.json"), self.path("containers.json"))
        self.finish(process, 0)

    def test_crictl_that_fails_is_given_up(self):
        self.command("crictl", "exit 1")
        process = self.ready()
        self.signal(True)
        self.assertIn("the list of VM pods: given up", self.finish(process, 3))

    def test_an_answer_of_crictl_that_is_not_understood(self):
        self.write("pods.json", "[]")
        process = self.ready()
        self.signal(True)
        self.assertIn("not understood", self.finish(process, 3))

    def test_crictl_is_missing(self):
        os.remove(os.path.join(self.commands, "crictl"))
        process = self.ready()
        self.signal(True)
        self.assertIn("crictl is missing", self.finish(process, 3))

    def test_sigterm_releases_the_lock(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(number):
                self.write("log")
                process = self.ready()
                process.send_signal(number)
                self.finish(process, 0)
                self.assertEqual(len(self.log()), 2)

    def test_sigterm_releases_the_lock_while_a_command_hangs(self):
        self.pods(a={"one": "running"})
        self.write("hang-a")
        process = self.ready()
        self.signal(True)
        self.wait_for_log("hangs a")
        process.terminate()
        self.finish(process, 0)
        self.assertEqual(self.shutdowns(), [])

    def test_the_lock_does_not_outlive_a_kill(self):
        process = self.ready()
        process.kill()
        self.wait_for_log("released")

    def test_a_signal_with_false_is_ignored(self):
        self.pods(a={"one": "running"})
        process = self.ready()
        os.write(self.bus, b"nonsense\n{}\n[1]\n")
        self.signal(False)
        self.wait_for_line(process, "no shutdown")
        self.assertEqual(len(self.log()), 1)
        self.assertIsNone(process.poll())
        self.signal(True)
        self.finish(process, 0)
        self.assertEqual(self.shutdowns(), ["one"])

    def test_a_signal_that_is_not_from_logind_is_ignored(self):
        self.pods(a={"one": "running"})
        process = self.ready()
        self.signal(True, truth=False)
        self.wait_for_line(process, "the signal said true: ignored")
        self.assertEqual(len(self.log()), 1)
        self.signal(True)
        self.finish(process, 0)

    def test_a_signal_counts_where_logind_does_not_answer(self):
        self.pods(a={"one": "running"})
        process = self.ready()
        os.remove(self.path("PreparingForShutdown"))
        os.mkdir(self.path("PreparingForShutdown"))
        message = {"member": "PrepareForShutdown", "payload": {"type": "b", "data": [True]}}
        os.write(self.bus, (json.dumps(message) + "\n").encode())
        self.finish(process, 0)
        self.assertEqual(self.shutdowns(), ["one"])

    def test_a_signal_that_was_missed_is_found_by_asking(self):
        self.pods(a={"one": "running"})
        self.write("PreparingForShutdown", "b true")
        self.finish(self.ready(), 0)
        self.assertEqual(self.shutdowns(), ["one"])

    def test_a_monitor_that_ends_is_started_again(self):
        self.pods(a={"one": "running"})
        self.write("monitor-ends")
        process = self.ready()
        self.wait_for_line(process, "started again")
        self.signal(True)
        self.finish(process, 0)
        self.assertEqual(self.shutdowns(), ["one"])

    def test_a_shorter_delay_of_logind_is_taken_and_told(self):
        self.write("InhibitDelayMaxUSec", "t 100000000")
        process = self.start()
        self.wait_for_line(process, "logind waits 100 seconds only")
        self.wait_for_line(process, "VMs have 90 seconds")
        process.terminate()
        self.finish(process, 0)

    def test_a_delay_that_is_not_told(self):
        os.remove(self.path("InhibitDelayMaxUSec"))
        process = self.start()
        self.wait_for_line(process, "VMs have 135 seconds")
        process.terminate()
        self.finish(process, 0)

    def test_a_lock_that_is_refused_is_a_fault(self):
        self.command("systemd-inhibit", 'echo released >> "$FAKE/log"; exit 1')
        self.assertIn("did not give the lock", self.finish(self.start(), 1))

    def test_a_lock_that_gets_lost_is_a_fault(self):
        self.command("systemd-inhibit", 'read line; echo "$line"; echo released >> "$FAKE/log"')
        self.assertIn("the lock is lost", self.finish(self.start(), 1))

    def test_systemd_inhibit_is_missing(self):
        os.remove(os.path.join(self.commands, "systemd-inhibit"))
        self.write("log", "released\n")
        self.assertIn("are not shut down", self.finish(self.start(), 1))

    def test_busctl_is_missing(self):
        os.remove(os.path.join(self.commands, "busctl"))
        self.assertIn("are not shut down", self.finish(self.start(), 1))
