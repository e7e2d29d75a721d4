package kubelet

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// registrations are the fields of the spec of a KubeadmConfig that have flags of the kubelet: one for machines that join, one for the first
// one of a cluster. A control plane's config has either.
func registrations() []string { return []string{"joinConfiguration", "initConfiguration"} }

// Flag is a flag of the kubelet.
type Flag struct{ Name, Value string }

// String returns the flag as it is on a command line.
func (f Flag) String() string { return "--" + f.Name + "=" + f.Value }

var (
	flagName = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
	// flagValue is what is neither special in a shell nor in the file that kubeadm writes flags to.
	flagValue = regexp.MustCompile(`^[A-Za-z0-9._:/,=%+-]*$`)
)

// ValidName reports whether a flag may have this name.
func ValidName(name string) bool { return flagName.MatchString(name) }

// Patch returns a merge patch for a KubeadmConfig, or for a template if path has the fields above the spec: with the flags of these names
// as they are desired. Where other flags differ, or a value could not be written, too, it changes nothing. Without a change, it is nil.
func Patch(current, desired map[string]any, names []string, path ...string) (map[string]any, error) {
	patch := map[string]any{}
	for _, registration := range registrations() {
		at := slices.Concat(path, []string{"spec", registration, "nodeRegistration", "kubeletExtraArgs"})
		is, _, err := unstructured.NestedFieldNoCopy(current, at...)
		if err != nil {
			return nil, err
		}
		wanted, _, err := unstructured.NestedFieldNoCopy(desired, at...)
		if err != nil {
			return nil, err
		}
		if reflect.DeepEqual(is, wanted) {
			continue
		}
		before, err := flagsOf(is)
		if err != nil {
			return nil, fmt.Errorf("current %s: %w", strings.Join(at, "."), err)
		}
		after, err := flagsOf(wanted)
		if err != nil {
			return nil, fmt.Errorf("desired %s: %w", strings.Join(at, "."), err)
		}
		able := func(f Flag) bool { return slices.Contains(names, f.Name) && flagValue.MatchString(f.Value) }
		if !slices.Equal(slices.DeleteFunc(before, able), slices.DeleteFunc(after, able)) {
			continue
		}
		if err := unstructured.SetNestedField(patch, wanted, at...); err != nil {
			return nil, err
		}
	}
	if len(patch) == 0 {
		return nil, nil
	}
	return patch, nil
}

// Desired returns the flags of these names that a KubeadmConfig wants, sorted.
func Desired(config map[string]any, names []string) ([]Flag, error) {
	for _, registration := range registrations() {
		at := []string{"spec", registration, "nodeRegistration"}
		found, ok, err := unstructured.NestedMap(config, at...)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		flags, err := flagsOf(found["kubeletExtraArgs"])
		if err != nil {
			return nil, fmt.Errorf("%s.kubeletExtraArgs: %w", strings.Join(at, "."), err)
		}
		flags = slices.DeleteFunc(flags, func(f Flag) bool { return !slices.Contains(names, f.Name) })
		for _, f := range flags {
			if !flagValue.MatchString(f.Value) {
				return nil, fmt.Errorf("%s.kubeletExtraArgs: the value of %s has characters other than letters, digits and ._:/,=%%+-",
					strings.Join(at, "."), f.Name)
			}
		}
		return flags, nil
	}
	return nil, nil
}

// flagsOf returns flags as KubeadmConfigs have them, sorted: a map in v1beta1, a list in v1beta2.
func flagsOf(args any) ([]Flag, error) {
	var flags []Flag
	switch args := args.(type) {
	case nil:
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(args)) {
			flags = append(flags, Flag{name, fmt.Sprint(args[name])})
		}
	case []any:
		for i, a := range args {
			arg, ok := a.(map[string]any)
			if !ok {
				return nil, fmt.Errorf("[%d] must be an object with name and value", i)
			}
			name, _ := arg["name"].(string)
			value, _ := arg["value"].(string)
			flags = append(flags, Flag{name, value})
		}
	default:
		return nil, fmt.Errorf("must be a map or a list, not %T", args)
	}
	slices.SortFunc(flags, func(a, b Flag) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Value, b.Value)) })
	return flags, nil
}
