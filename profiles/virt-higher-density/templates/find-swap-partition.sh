#!/usr/bin/env bash
# Switches on the swap partition that is labelled CNV_SWAP, where the machine has one and its kubelet can live with it.
# Whatever happens here, the machine starts.
set -euo pipefail
partition=/dev/disk/by-partlabel/CNV_SWAP
drop_ins=/etc/openshift/kubelet.conf.d
# A kubelet that does not read the file with the settings for swap may refuse to start beside swap.
service=$(systemctl cat kubelet.service || true)
if ! grep --quiet --fixed-strings "$drop_ins" <<<"$service"; then
  echo "the kubelet of this release does not read $drop_ins: this machine goes without swap"
  exit 0
fi
# Links to partitions appear when udev has seen them.
udevadm settle --timeout=30 || true
if [[ ! -e $partition ]]; then
  echo "no partition is labelled CNV_SWAP: this machine goes without swap"
  exit 0
fi
# swapon lists devices by their real names.
active=$(swapon --show=NAME --noheadings --raw || true)
if grep --quiet --line-regexp --fixed-strings "$(readlink --canonicalize "$partition")" <<<"$active"; then
  echo "$partition is in use already"
  exit 0
fi
if ! swapon "$partition"; then
  echo "$partition can't be used, is it formatted (mkswap)? This machine goes without swap"
  exit 0
fi
echo "$partition is in use"
