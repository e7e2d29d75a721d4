package naming

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// ParseService returns the Service of a host name, <name>.<namespace>.svc, which may end with .cluster.local, and false for all
// other names. It is for programs that reach Services without the DNS of their cluster.
func ParseService(host string) (types.NamespacedName, bool) {
	parts := strings.Split(strings.TrimSuffix(strings.TrimSuffix(host, "."), ".cluster.local"), ".")
	if len(parts) != 3 || parts[0] == "" || parts[1] == "" || parts[2] != "svc" {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: parts[1], Name: parts[0]}, true
}
