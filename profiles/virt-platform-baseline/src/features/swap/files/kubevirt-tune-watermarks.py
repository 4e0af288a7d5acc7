#!/usr/bin/python3
"""Lifts the low watermark of the kernel above the eviction threshold of the kubelet.

Under the low watermark the kernel reclaims memory in the background, and swaps. Under evictionHard the kubelet evicts
pods, and so ends virtual machines. Where the low watermark is the smaller one, pods are evicted on a machine that has
not tried its swap. Wanted: high > low > eviction > min. The watermark is never lowered.
"""
import glob
import json
import math
import os
import re
import sys
import time
from fractions import Fraction

ROOT = os.environ.get("ADVISOR_ROOT", "/")
RETRY_SECONDS = float(os.environ.get("ADVISOR_RETRY_SECONDS", "10"))
ATTEMPTS = 5
# Where the machine-config operator writes it. /var/lib/kubelet/config.json, in spite of its name, is the pull secret.
KUBELET_CONFIG = "/etc/kubernetes/kubelet.conf"
DROP_INS = "/etc/openshift/kubelet.conf.d/*.conf"
SCALE_FACTOR = "/proc/sys/vm/watermark_scale_factor"
LOWEST_FACTOR, HIGHEST_FACTOR = 10, 1000
MIB = 2**20
DEFAULT_THRESHOLD = "100Mi"  # what the kubelet takes where evictionHard says nothing
NUMBER = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:[eE]([+-]?[0-9]{1,3})|([numkMGTPE]|[KMGTPE]i)?)")
SUFFIXES = {"n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 10**3)}
SUFFIXES.update({suffix: 1000**power for power, suffix in enumerate(("", "k", "M", "G", "T", "P", "E"))})
SUFFIXES.update({f"{suffix}i": 1024**power for power, suffix in enumerate("KMGTPE", 1)})


class Fault(Exception):
    """A message for the journal."""


def under_root(path):
    return os.path.join(ROOT, path.lstrip("/"))


def read(path):
    with open(under_root(path), encoding="utf-8") as file:
        return file.read()


def quantity(text):
    """A resource quantity of Kubernetes, exactly: 1.5Gi, 100Mi, 1e9, 500m, 123."""
    match = NUMBER.fullmatch(text)
    if not match:
        raise Fault(f"{text!r} is not a quantity")
    number, exponent, suffix = match.groups()
    return Fraction(number) * (Fraction(10) ** int(exponent) if exponent else SUFFIXES[suffix or ""])


def threshold_bytes(text, total):
    """The value of memory.available in bytes, a quantity or a part of the memory such as 10%."""
    # For the kubelet these two mean that there is no threshold.
    if text in ("0%", "100%"):
        return 0
    if text.endswith("%"):
        if not re.fullmatch(r"[0-9]+\.?[0-9]*|\.[0-9]+", text[:-1]):
            raise Fault(f"{text!r} is not a percentage")
        result = total * Fraction(text[:-1]) / 100
    else:
        result = quantity(text)
    if not 0 <= result <= total:
        raise Fault(f"{text!r} is not between nothing and the memory of this machine")
    return math.ceil(result)


def eviction_setting(text):
    """evictionHard["memory.available"] of a configuration of the kubelet, None where it is not set."""
    if text.lstrip().startswith("{"):
        hard = json.loads(text, parse_float=str, parse_int=str).get("evictionHard") or {}
        if not isinstance(hard, dict):
            raise ValueError("evictionHard is not a map")
        value = hard.get("memory.available")
        return None if value is None else str(value)
    # There is no reader of YAML in the standard library; this one entry is found without.
    text = re.sub(r"(^|\s)#.*", r"\1", text, flags=re.MULTILINE)
    block = re.search(r"""^["']?evictionHard["']?:(.*(?:\n(?:[ \t].*)?)*)""", text, flags=re.MULTILINE)
    entry = block and re.search(
        r"""\bmemory\.available["']?[ \t]*:[ \t]*(?:"(.*?)"|'(.*?)'|(.*?)(?:,\s|[}\r\n]|$))""", block.group(1))
    return next((value.strip() for value in entry.groups() if value), None) if entry else None


def kubelet_threshold():
    """The setting in effect: the configuration, then the drop-ins, the last one wins."""
    if not os.path.exists(under_root(KUBELET_CONFIG)):
        raise Fault(f"there is no configuration of the kubelet ({KUBELET_CONFIG})")
    setting = DEFAULT_THRESHOLD
    drop_ins = [f"/{os.path.relpath(path, ROOT)}" for path in sorted(glob.glob(under_root(DROP_INS)))]
    for path in [KUBELET_CONFIG] + drop_ins:
        try:
            setting = eviction_setting(read(path)) or setting
        except (OSError, ValueError) as error:
            raise Fault(f"{path} can't be read: {error}") from error
    return setting


def patient_threshold():
    """On the first start of a machine its configuration may come a little later."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return kubelet_threshold()
        except Fault:
            if attempt == ATTEMPTS:
                raise
            time.sleep(RETRY_SECONDS)


def zone_sums():
    """min, low and managed of all memory zones in bytes."""
    try:
        page = os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        page = 4096
    sums = dict.fromkeys(("min", "low", "managed", "boost"), 0)
    for line in read("/proc/zoneinfo").splitlines():
        fields = line.split()
        if len(fields) == 2 and fields[0] in sums:
            sums[fields[0]] += int(fields[1]) * page
        # The kernel shows watermarks with the boost that they have at the moment, which goes away again.
        if len(fields) == 2 and fields[0] == "boost":
            sums["min"] -= int(fields[1]) * page
            sums["low"] -= int(fields[1]) * page
    if not sums["managed"]:
        raise Fault("/proc/zoneinfo shows no memory")
    return sums


def total_memory():
    match = re.search(r"^MemTotal:\s+([0-9]+) kB", read("/proc/meminfo"), flags=re.MULTILINE)
    if not match:
        raise Fault("/proc/meminfo shows no MemTotal")
    return int(match.group(1)) * 1024


def main():
    total = total_memory()
    eviction = threshold_bytes(patient_threshold(), total)
    zones = zone_sums()
    if zones["min"] >= eviction:
        print(f"warning: the min watermark ({zones['min'] // MIB} MiB) is not under the eviction threshold "
              f"({eviction // MIB} MiB)", file=sys.stderr)
    target = eviction + max(256 * MIB, total // 100)
    if zones["low"] >= target:
        print(f"the low watermark of {zones['low'] // MIB} MiB is sufficient, wanted is {target // MIB} MiB")
        return 0
    exact = math.ceil(Fraction((target - zones["min"]) * 10000, zones["managed"]))
    factor = max(LOWEST_FACTOR, min(HIGHEST_FACTOR, exact))
    if factor < exact:
        print(f"warning: watermark_scale_factor {exact} would be needed, {factor} is the highest", file=sys.stderr)
    if int(read(SCALE_FACTOR)) < factor:
        with open(under_root(SCALE_FACTOR), "w", encoding="utf-8") as file:
            file.write(f"{factor}\n")
        if read(SCALE_FACTOR).strip() != str(factor):
            raise Fault(f"the kernel did not take watermark_scale_factor {factor}")
        zones = zone_sums()
    if zones["low"] <= eviction:
        print(f"the low watermark of {zones['low'] // MIB} MiB is not above the eviction threshold of "
              f"{eviction // MIB} MiB: pods may be evicted before the machine swaps", file=sys.stderr)
        return 1
    print(f"watermark_scale_factor is {read(SCALE_FACTOR).strip()}, the low watermark {zones['low'] // MIB} MiB")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Fault, OSError, ValueError) as fault:
        print(f"{fault}; watermark_scale_factor was left as it is", file=sys.stderr)
        sys.exit(1)
