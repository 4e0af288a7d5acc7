# Outlives the process that started it, to end its servers and remove their folder: `guard.rs` says why and how.
trap '' INT TERM HUP
folder=$(mktemp -d "${TMPDIR:-/tmp}/virt-advisor-controlplane.XXXXXX") || exit 1
echo "$folder"
exec >/dev/null
pids=
while read -r word pid; do
	case $word in
	pid) pids="$pids $pid" ;;
	gone)
		left=
		for each in $pids; do
			[ "$each" = "$pid" ] || left="$left $each"
		done
		pids=$left
		;;
	esac
done
for each in $pids; do
	kill -9 "$each"
done
# A server that is still dying may write once more into the folder.
tries=0
while ! rm -rf "$folder" || [ -e "$folder" ]; do
	tries=$((tries + 1))
	[ "$tries" -lt 100 ] || exit 1
	sleep 0.1
done
