# Answers with the state of a claim's bootstrap command: none, running, ended <status>, interrupted (it was killed, by a reboot for
# example), or conflict (the Host holds another claim). Variables: claim.
set -eu
directory=/var/lib/cluster-api-hosts
if [ ! -e "$directory/claim" ]; then
	echo none
elif [ "$(cat "$directory/claim")" != "$claim" ]; then
	echo conflict
elif [ -e "$directory/status" ]; then
	echo ended "$(cat "$directory/status")"
elif ! flock -n "$directory/running" true; then
	echo running
elif [ -e "$directory/status" ]; then
	echo ended "$(cat "$directory/status")" # it has ended since
else
	echo interrupted
fi
