# Runs the operator and ends it when the pipe from the program that started us closes: `operator.rs` says why and how.
# The first argument is the log, the others are the command.
log=$1
shift
# File 4 is the pipe back: nobody writes to it, and it closes when the operator ends.
"$@" 4>&1 </dev/null >>"$log" 2>&1 &
# Only now, or the operator would ignore them too.
trap '' INT TERM HUP
echo "$!"
exec >/dev/null
read -r _
kill -9 "$!"
wait "$!"
