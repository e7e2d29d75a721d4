# Sets flags of the kubelet that runs here, and restarts it unless it runs with them.
#
#   sh script.sh NAMES FLAG...
#
# NAMES are the names of the flags, such as "max-pods|v"; those that are not among the flags are removed.
set -eu
names=$1
shift
file=/var/lib/kubelet/kubeadm-flags.env

# chosen prints the flags with these names of a command line.
chosen() { tr '\0" ' '\n\n\n' | grep -E -- "^--($names)=" | sort || true; }
pid() { systemctl show --property MainPID --value kubelet; }
runs() { [ "$(pid)" != 0 ] && [ "$(chosen <"/proc/$(pid)/cmdline")" = "$wanted" ]; }
# restart reports whether the kubelet still runs after a few seconds: with a flag that it does not accept, it exits at once.
restart() {
	systemctl restart kubelet
	first=$(pid)
	sleep 3
	runs && [ "$(pid)" = "$first" ]
}

wanted=$(printf '%s\n' "$@" | sort)
if [ "$(chosen <"$file")" != "$wanted" ]; then
	# The machine may stop at any time: files are replaced at once, and the flags from before are kept until the kubelet runs.
	[ -e "$file.before" ] || { cp "$file" "$file.new" && mv "$file.new" "$file.before"; }
	# The file has one line: KUBELET_KUBEADM_ARGS="FLAG..."
	sed -E -e "s/(\"| )--($names)=[^\" ]*/\1/g" -e "s| *\"\$| $*\"|" "$file" >"$file.new"
	mv "$file.new" "$file"
fi
if runs || restart; then
	rm -f "$file.before"
	exit 0
fi
echo "the kubelet does not run with $*: its flags are rolled back" >&2
[ ! -e "$file.before" ] || mv "$file.before" "$file"
systemctl restart kubelet
exit 1
