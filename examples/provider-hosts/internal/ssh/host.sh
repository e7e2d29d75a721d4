# Runs on a Host as root, does one action, and answers with one line. Variables: action, claim, and those of the action.
# All state is in the directory. A job (bootstrap, reset or etcd) is a command that runs detached from the connection, in a process group of
# its own, and keeps <job>.running locked. The file claim has the claim that the bootstrap job ran for, the file released all those
# that were reset.
set -eu
umask 077
directory=/var/lib/cluster-api-hosts
mkdir -p "$directory"
exec 9>"$directory/lock"
flock -w 20 9 || { echo busy; exit; }

# run <job> starts a job. Variables: command, data, and limit, in seconds.
run() {
	rm -f "$directory/$1.status" "$directory/$1.pid"
	exec 8>"$directory/$1.running"
	flock -n 8
	printf %s "$command" >"$directory/$1.command"
	CLAIM=$claim PROVIDER_ID=${provider_id-} DIRECTORY=$directory job=$directory/$1 data=$data limit=${limit-} setsid sh -c '
		echo $$ >"$job.pid"
		status=0
		${limit:+timeout --foreground --kill-after 60 "$limit"} sh "$job.command" <"$data" >"$job.log" 2>&1 || status=$?
		[ "$data" = /dev/null ] || rm -f "$data"
		echo $status >"$job.status.new"
		mv "$job.status.new" "$job.status"
	' </dev/null >/dev/null 2>&1 9>&- &
	exec 8>&-
}

# state <job> is running, ended <status>, or interrupted: it did not start, or was killed, by a reboot for example.
state() {
	if [ ! -e "$directory/$1.status" ] && ! flock -n "$directory/$1.running" true; then
		echo running
	elif [ -e "$directory/$1.status" ]; then
		echo ended "$(cat "$directory/$1.status")"
	else
		echo interrupted
	fi
}

# start runs the bootstrap command with the data on standard input, once per claim, and answers with its state. Variables: command,
# provider_id, sum (of the data).
start() {
	if [ ! -e "$directory/claim" ]; then
		data=$directory/data
		cat >"$data"
		# A connection that breaks must not leave half of the data to be run.
		[ "$(sha256sum <"$data")" = "$sum  -" ]
		rm -rf /run/cluster-api
		printf %s "$claim" >"$directory/claim.new"
		sync "$data" "$directory/claim.new"
		mv "$directory/claim.new" "$directory/claim" # from here on, the data counts as run
		run bootstrap
	fi
	state bootstrap
}

# reset runs the reset command until it succeeds, and then forgets the claim. It answers none if nothing ran for a claim, running,
# failed (the next call starts over), or reset. Variables: command.
reset() {
	if [ -e "$directory/claim" ]; then
		case $(state reset) in
		running)
			echo running
			return
			;;
		interrupted) # or it did not run yet
			for job in bootstrap etcd; do
				[ "$(state $job)" != running ] || kill -s KILL -- "-$(cat "$directory/$job.pid")"
			done
			data=/dev/null
			run reset
			echo running
			return
			;;
		"ended 0") ;;
		*)
			rm -f "$directory/reset.status"
			echo failed
			return
			;;
		esac
	fi
	grep -qsxF "$claim" "$directory/released" || echo "$claim" >>"$directory/released" # a manager that acts late must not start it
	[ -e "$directory/claim" ] && answer=reset || answer=none
	rm -f "$directory/data" "$directory"/bootstrap.* "$directory"/reset.* "$directory"/etcd.*
	rm -f "$directory/claim" # last: without it, the Host counts as reset
	echo $answer
}

# etcd runs a command for the etcd member. It answers running, or once with what the command printed last: the next call starts over.
# Variables: command, uid (of the command), limit.
etcd() {
	if [ "$(state etcd)" = running ]; then
		echo running
	elif [ -e "$directory/etcd.status" ] && [ "$(cat "$directory/etcd.uid")" = "$uid" ]; then
		tail -n 1 "$directory/etcd.log"
		rm -f "$directory/etcd.status"
	else
		printf %s "$uid" >"$directory/etcd.uid"
		data=/dev/null
		# The job ends with the command, even if that leaves a process.
		command="exec 8>&-
$command"
		run etcd
		echo running
	fi
}

# Whatever the action, the state of another claim is left alone.
if [ -e "$directory/claim" ] && [ "$(cat "$directory/claim")" != "$claim" ]; then
	echo conflict
	exit
fi
case $action in
start)
	if grep -qsxF "$claim" "$directory/released"; then
		echo conflict
	else
		start
	fi
	;;
state)
	if [ -e "$directory/claim" ]; then
		state bootstrap
	else
		echo state lost
	fi
	;;
reset) reset ;;
etcd)
	if [ -e "$directory/claim" ]; then
		etcd
	else
		echo none
	fi
	;;
esac
