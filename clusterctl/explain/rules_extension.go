package explain

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sigs.k8s.io/cluster-api/clusterctl/tree"
)

// extensionName matches the name of a runtime extension in a message of the core manager, "<handler>.<ExtensionConfig>".
var extensionName = regexp.MustCompile(`\bextension [a-z0-9-]+\.([a-z0-9-]+)\b`)

// extension returns the cause of a condition whose message says that a runtime extension fails.
func (v *view) extension(of *unstructured.Unstructured, c *tree.Condition) (Cause, bool) {
	found := extensionName.FindStringSubmatch(c.Message)
	if found == nil {
		return Cause{}, false
	}
	config := fmt.Sprintf("`kubectl get extensionconfig %s -o yaml`", found[1])
	cause := v.cause(ExtensionFailed, Blocked, of, c, c.Message)
	switch {
	case strings.Contains(c.Message, "is not deterministic"):
		return cause.do("Correct the extension: the same request must always lead to the same templates, whatever the time, " +
			"random numbers and the order of maps are; until then, no Machine is replaced"), true
	case strings.Contains(c.Message, "reported a failure"), strings.Contains(c.Message, "returned"):
		return cause.do("See what the extension says in the log of the core manager, and in that of its server: " +
			config + " shows its address"), true
	}
	return cause.do(
		"Check that its server runs and is reachable: "+config+" shows its address, its CA and whether it was discovered",
		"Nothing is changed until then; it is retried by itself",
	), true
}
