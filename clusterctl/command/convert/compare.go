package convert

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"sigs.k8s.io/cluster-api/sdk/conversion"
)

// comparison is what the spec of an object loses in a conversion, found by converting the result back.
type comparison struct {
	// lost are the paths of values that the new version cannot express, sorted.
	lost []string
	// empty are the empty objects and lists that the new version and its conversion back do not have, and those that the new version
	// allows to be empty.
	empty, allowed []path
}

// path is a path in an object: names of fields, and positions in lists.
type path []string

// compare compares an object, as a client wrote it, with the result of a conversion, which has no annotations of conversions.
func compare(ctx context.Context, written, converted *unstructured.Unstructured) (comparison, error) {
	kind := written.GroupVersionKind()
	back, err := conversion.Shared().In(ctx, kind.Version, converted)
	if err != nil {
		return comparison{}, err
	}
	// The type of the version drops zeros, and writes values such as durations in one form.
	typed := newTree(kind)
	if err := conversion.Shared().Convert(ctx, written, typed); err != nil {
		return comparison{}, err
	}
	c := comparison{}
	c.value(path{"spec"}, written.Object["spec"], typed.Object["spec"], back.Object["spec"])
	slices.Sort(c.lost)
	slices.SortFunc(c.empty, slices.Compare)
	return c, nil
}

// newTree returns an empty object of a kind.
func newTree(kind schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(kind)
	return u
}

// value compares a value with its typed form, and with what it is after both conversions.
func (c *comparison) value(at path, written, typed, back any) {
	switch written := written.(type) {
	case map[string]any:
		if len(written) == 0 {
			c.nothing(at, back)
			return
		}
		typed, _ := typed.(map[string]any)
		back, _ := back.(map[string]any)
		for name, value := range written {
			if name != "apiVersion" && name != "namespace" { // Of references: v1beta2 finds them out.
				c.value(at.with(name), value, typed[name], back[name])
			}
		}
	case []any:
		typed, _ := typed.([]any)
		backItems, _ := back.([]any)
		switch {
		case len(written) == 0:
			c.nothing(at, back)
		case len(typed) != len(written) || len(backItems) != len(written):
			c.lost = append(c.lost, at.String())
		default:
			for i, item := range written {
				c.value(at.with(strconv.Itoa(i)), item, typed[i], backItems[i])
			}
		}
	default:
		// What the type drops is a zero, which its version cannot tell from unset.
		if written != nil && typed != nil && !reflect.DeepEqual(typed, back) {
			c.lost = append(c.lost, at.String())
		}
	}
}

// nothing adds an empty object or list.
func (c *comparison) nothing(at path, back any) {
	switch {
	case at.mayBeEmpty():
		c.allowed = append(c.allowed, at)
	case back == nil:
		c.empty = append(c.empty, at)
	}
}

// with returns the path of a part of a value.
func (p path) with(name string) path { return append(slices.Clone(p), name) }

// isPosition reports whether a part of a path is a position in a list.
func isPosition(name string) bool {
	_, err := strconv.Atoi(name)
	return err == nil
}

// String returns the path as messages have it, such as spec.files[0].owner.
func (p path) String() string {
	var b strings.Builder
	for i, name := range p {
		switch {
		case isPosition(name):
			fmt.Fprintf(&b, "[%s]", name)
		case i > 0:
			b.WriteString("." + name)
		default:
			b.WriteString(name)
		}
	}
	return b.String()
}

// mayBeEmpty reports whether v1beta2 allows the object or list at a path to be empty.
func (p path) mayBeEmpty() bool {
	names := slices.DeleteFunc(slices.Clone(p), isPosition)
	all := "." + strings.Join(names, ".")
	return slices.ContainsFunc(emptyInV1Beta2(), func(end string) bool { return strings.HasSuffix(all, "."+end) })
}

// emptyInV1Beta2 are the ends of the paths of the objects and lists that may be empty in v1beta2. All others must have a field or an item.
// The types of v1beta2 do not write most of them, so that conversions leave them out.
func emptyInV1Beta2() []string {
	return []string{
		"metadata.labels", "metadata.annotations", "deprecatedV1Beta1Metadata.labels", "deprecatedV1Beta1Metadata.annotations",
		"x-metadata.labels", "x-metadata.annotations",
		"spec.selector", "spec.clusterSelector", "spec.namespaceSelector", "machines.selector", "machines.clusterSelector",
		"pods.selector", "pods.namespaceSelector", "matchLabels", "matchExpressions", "matchExpressions.values",
		"matchResources.machineDeploymentClass", "matchResources.machinePoolClass", "machineDeploymentClass.names", "machinePoolClass.names",
		"jsonPatches.valueFrom", "patches.definitions", "patches.external", "external.settings", "spec.settings", "openAPIV3Schema.enum",
		"spec.workers.machinePools.failureDomains", "spec.failureDomains", "spec.providerIDList", "spec.bootstrap", "spec.bindings",
		"bindings.resources",
		"clusterConfiguration.featureGates", "joinConfiguration.controlPlane", "nodeRegistration.taints", "authProvider.config",
		"extraEnvs.valueFrom", "diskSetup.filesystems", "diskSetup.partitions", "filesystems.extraOpts", "ntp.servers", "users.sshAuthorizedKeys",
	}
}

// keep sets empty objects and lists that the version of an object allows, where the object has nothing and the version has the field.
func keep(u *unstructured.Unstructured, written map[string]any, allowed []path) {
	for _, at := range allowed {
		next := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(u.Object)}
		if put(next.Object, at, valueAt(written, at)) && strict(next) == nil {
			u.Object = next.Object
		}
	}
}

// valueAt returns the value at a path, which exists.
func valueAt(value any, at path) any {
	for _, name := range at {
		switch typed := value.(type) {
		case map[string]any:
			value = typed[name]
		case []any:
			i, _ := strconv.Atoi(name)
			value = typed[i]
		}
	}
	return value
}

// put sets a value at a path where there is none, and creates the objects on the way. It returns false if a list has no such item, or
// if there is a value.
func put(object map[string]any, at path, value any) bool {
	var current any = object
	for i, name := range at {
		last := i == len(at)-1
		switch typed := current.(type) {
		case map[string]any:
			if last {
				_, exists := typed[name]
				typed[name] = value
				return !exists
			}
			if typed[name] == nil {
				typed[name] = map[string]any{}
			}
			current = typed[name]
		case []any:
			position, err := strconv.Atoi(name)
			if err != nil || position >= len(typed) || last {
				return false
			}
			current = typed[position]
		default:
			return false
		}
	}
	return false
}
