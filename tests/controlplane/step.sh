# Sourced by the build scripts: runs a command that is silent for minutes, and says what runs and for how long.

# step LABEL COMMAND...: what the command prints is kept, and shown only if it fails.
step() {
	label=$1
	shift
	log=$(mktemp)
	began=$(date +%s)
	echo "$label" >&2
	"$@" >"$log" 2>&1 &
	running=$!
	trap 'kill "$running" 2>/dev/null; rm -f "$log"; exit 130' INT TERM
	said=0
	while kill -0 "$running" 2>/dev/null; do
		sleep 1
		elapsed=$(($(date +%s) - began))
		if [ $((elapsed / 30)) -gt "$said" ]; then
			said=$((elapsed / 30))
			fetched=$(grep -c '^go: downloading' "$log" || true)
			printf '  … %d:%02d, %s modules downloaded\n' $((elapsed / 60)) $((elapsed % 60)) "$fetched" >&2
		fi
	done
	if ! wait "$running"; then
		grep -v '^go: downloading' "$log" >&2 || true
		rm -f "$log"
		return 1
	fi
	rm -f "$log"
	elapsed=$(($(date +%s) - began))
	printf '  done in %d:%02d\n' $((elapsed / 60)) $((elapsed % 60)) >&2
}
