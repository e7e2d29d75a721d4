# Starts the bootstrap command with the data on standard input, once, and answers as state.sh does. The command runs on when the
# connection ends. Variables: claim, provider_id, command, sum (of the data), state (the script state.sh).
set -eu
umask 077
directory=/var/lib/cluster-api-hosts
mkdir -p "$directory"
exec 9>"$directory/lock"
flock -w 20 9
if [ ! -e "$directory/claim" ]; then
	cat >"$directory/data"
	# A connection that breaks must not leave half of the data to be run.
	[ "$(sha256sum <"$directory/data")" = "$sum  -" ]
	rm -rf /run/cluster-api
	exec 8>"$directory/running"
	flock -n 8
	printf %s "$command" >"$directory/command"
	printf %s "$claim" >"$directory/claim.new"
	sync "$directory/data" "$directory/command" "$directory/claim.new"
	mv "$directory/claim.new" "$directory/claim" # from here on, the data counts as run
	CLAIM=$claim PROVIDER_ID=$provider_id DIRECTORY=$directory setsid sh -c '
		echo $$ >"$DIRECTORY/pid"
		status=0
		sh "$DIRECTORY/command" <"$DIRECTORY/data" >"$DIRECTORY/log" 2>&1 || status=$?
		rm -f "$DIRECTORY/data"
		echo $status >"$DIRECTORY/status.new"
		mv "$DIRECTORY/status.new" "$DIRECTORY/status"
	' </dev/null >/dev/null 2>&1 9>&- &
	exec 8>&-
fi
eval "$state"
