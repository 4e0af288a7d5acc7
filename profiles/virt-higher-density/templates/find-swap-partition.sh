#!/usr/bin/env bash
# Switches on the swap partition that is labelled CNV_SWAP, if this machine has one.
set -euo pipefail
partition=/dev/disk/by-partlabel/CNV_SWAP
if [[ ! -e $partition ]]; then
  echo "no partition is labelled CNV_SWAP: this machine goes without swap"
  exit 0
fi
# swapon lists devices by their real names.
active=$(swapon --show=NAME --noheadings --raw)
if grep --quiet --line-regexp --fixed-strings "$(readlink --canonicalize "$partition")" <<<"$active"; then
  echo "$partition is in use already"
  exit 0
fi
swapon "$partition"
echo "$partition is in use"
