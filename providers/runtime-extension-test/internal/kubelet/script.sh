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
# write replaces the file at once: the machine may stop at any time.
write() { cat >"$file.new" && mv "$file.new" "$file"; }

wanted=$(printf '%s\n' "$@" | sort)
before=$(cat "$file")
if [ "$(chosen <"$file")" != "$wanted" ]; then
	# The file has one line: KUBELET_KUBEADM_ARGS="FLAG..."
	printf '%s\n' "$before" | sed -E -e "s/(\"| )--($names)=[^\" ]*/\1/g" -e "s|\"\$| $*\"|" | write
fi
if runs || restart; then
	exit 0
fi
echo "the kubelet does not run with $*: its flags are rolled back" >&2
printf '%s\n' "$before" | write
systemctl restart kubelet
exit 1
