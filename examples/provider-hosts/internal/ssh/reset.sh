# Resets a Host after a claim, and answers reset, none (nothing ran for a claim), conflict (data of another claim ran) or failed.
# Variables: claim, command.
set -eu
umask 077
directory=/var/lib/cluster-api-hosts
mkdir -p "$directory"
exec 9>"$directory/lock"
flock -w 20 9
if [ ! -e "$directory/claim" ]; then
	echo none
	exit
fi
if [ "$(cat "$directory/claim")" != "$claim" ]; then
	echo conflict
	exit
fi
if [ ! -e "$directory/status" ] && ! flock -n "$directory/running" true; then
	kill -s KILL -- "-$(cat "$directory/pid")" # the bootstrap command still runs
fi
printf %s "$command" >"$directory/command"
if sh "$directory/command" </dev/null >"$directory/log" 2>&1 9>&-; then
	cd "$directory"
	rm -f data command pid status log running
	rm -f claim # last: without it, the Host counts as reset
	echo reset
else
	echo failed
fi
