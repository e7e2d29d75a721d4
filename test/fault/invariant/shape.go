package invariant

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/cluster-api/test/fault/history"
	"sigs.k8s.io/cluster-api/test/fault/proxy"
)

// generated matches the suffix of a generated name, hash the value of a template hash label.
var (
	generated = regexp.MustCompile(`-[bcdfghjklmnpqrstvwxz2456789]{5}\b`)
	hash      = regexp.MustCompile(`\b[0-9]{6,10}\b`)
	// namespace matches the name of a run's namespace.
	namespace = regexp.MustCompile(`\bf[0-9]{4}\b`)
)

func sameFinalState(r Run) []Violation {
	if r.Baseline == nil {
		return nil
	}
	if diff := cmp.Diff(r.Baseline, Shape(append(append(history.Timeline{}, r.Before...), r.Timeline...).End())); diff != "" {
		return []Violation{{Detail: "(-baseline +now):\n" + diff}}
	}
	return nil
}

// Shape describes every object except Events, without what differs from run to run: kind and name, owners, finalizers,
// labels, keys of annotations, spec, conditions, and status without times. Owners whose UID does not exist are marked as
// gone.
func Shape(now history.State) []string {
	names := map[types.UID]string{}
	for key, o := range now {
		names[o.GetUID()] = key.Kind + "/" + anonymous(o.GetName())
	}
	var lines []string
	for key, o := range now {
		if key.Kind == "Event" {
			continue
		}
		lines = append(lines, describe(o, names))
	}
	slices.Sort(lines)
	return lines
}

func anonymous(text string) string {
	return namespace.ReplaceAllString(hash.ReplaceAllString(generated.ReplaceAllString(text, "-*"), "#"), "*")
}

func describe(o *unstructured.Unstructured, names map[types.UID]string) string {
	var owners, labels, annotations []string
	for _, ref := range o.GetOwnerReferences() {
		name, exists := names[ref.UID]
		if !exists {
			name = ref.Kind + "/" + anonymous(ref.Name) + " (gone)"
		}
		if ref.Controller != nil && *ref.Controller {
			name = "controller " + name
		}
		owners = append(owners, name)
	}
	for k, v := range o.GetLabels() {
		labels = append(labels, k+"="+anonymous(v))
	}
	for k := range o.GetAnnotations() {
		if k != proxy.TouchedAnnotation {
			annotations = append(annotations, k)
		}
	}
	for _, list := range [][]string{owners, labels, annotations} {
		slices.Sort(list)
	}
	parts := []string{fmt.Sprintf("%s/%s owners %v finalizers %v labels %v annotations %v conditions %v spec %v status %v",
		o.GetKind(), anonymous(o.GetName()), owners, o.GetFinalizers(), labels, annotations, conditions(o),
		content(o, "spec"), content(o, "status"))}
	for _, part := range []string{"rules", "roleRef", "subjects", "webhooks", "providerName", "type", "version"} {
		if _, has := o.Object[part]; has {
			parts = append(parts, part, content(o, part))
		}
	}
	return strings.Join(parts, " ")
}

// content returns a part of an object as JSON, without what differs from run to run.
func content(o *unstructured.Unstructured, part string) string {
	value := o.Object[part]
	// Any Machine may be the one that initialized the cluster, any claim the first to get an address; and reservations that are done are
	// dropped with the next change.
	differing := map[string][]string{
		"KubeadmConfig": {"clusterConfiguration", "initConfiguration", "joinConfiguration"},
		"IPAddress":     {"address"}, "InClusterIPPool": {"reservations"}, "Service": {"clusterIP", "clusterIPs"},
		"EtcdBackup": {"archive", "etcd", "attempts"}, // Each archive is another one; the scenario checks them.
		// So are revisions, indexes and fingerprints of certificates.
		"ControlPlaneRestore": {"confirm", "backup", "data"}, "ControlPlaneRecovery": {"members", "inspection"},
		"CertificateAuthorityRotation": {"authorities"},
	}[o.GetKind()]
	if fields, ok := value.(map[string]any); ok {
		value = maps.Clone(fields)
		for _, key := range differing {
			delete(value.(map[string]any), key)
		}
	}
	text, err := json.Marshal(sorted(stripped(value)))
	if err != nil {
		return err.Error()
	}
	result := strings.ReplaceAll(anonymous(string(text)), `"`+o.GetNamespace()+`"`, `"*"`)
	if o.GetKind() == "CustomResourceDefinition" {
		return fmt.Sprintf("%x", sha256.Sum256([]byte(result))) // Schemas are long.
	}
	return result
}

// sorted sorts the entries of a ClusterResourceSetBinding: each ClusterResourceSet adds its own when it is applied first.
func sorted(value any) any {
	fields, _ := value.(map[string]any)
	entries, ok := fields["bindings"].([]any)
	if !ok {
		return value
	}
	name := func(entry any) string {
		e, _ := entry.(map[string]any)
		text, _ := e["clusterResourceSetName"].(string)
		return text
	}
	slices.SortFunc(entries, func(a, b any) int { return strings.Compare(name(a), name(b)) }) // A copy.
	return value
}

// stripped removes conditions, which describe adds separately, UIDs, ports and times, and zero values: whether a counter that
// is zero again is written depends on its previous value.
func stripped(value any) any {
	switch v := value.(type) {
	case map[string]any:
		kept := map[string]any{}
		for key, one := range v {
			switch key {
			case "conditions", "uid", "port", "resourceVersion", "observedGeneration":
			case "steps":
				kept[key] = stripped(named(one))
			case "caBundle":
				if !zero(one) {
					kept[key] = "trusted"
				}
			default:
				if left := stripped(one); !zero(left) {
					kept[key] = left
				}
			}
		}
		return kept
	case []any:
		kept := make([]any, 0, len(v))
		for _, one := range v {
			kept = append(kept, stripped(one))
		}
		return kept
	case string:
		if _, err := time.Parse(time.RFC3339, v); err == nil {
			return "time"
		}
	}
	return value
}

// named removes the messages of the steps of an operation, which have IDs of etcd members and revisions.
func named(steps any) any {
	all, ok := steps.([]any)
	if !ok {
		return steps
	}
	kept := make([]any, 0, len(all))
	for _, one := range all {
		if step, ok := one.(map[string]any); ok {
			step = maps.Clone(step)
			delete(step, "message")
			one = step
		}
		kept = append(kept, one)
	}
	return kept
}

func conditions(o *unstructured.Unstructured) string {
	var all []string
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range list {
		if condition, ok := c.(map[string]any); ok {
			all = append(all, fmt.Sprintf("%v=%v", condition["type"], condition["status"]))
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func zero(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return reflect.ValueOf(value).IsZero()
}
