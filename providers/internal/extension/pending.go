package extension

import (
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
)

// IsPending reports whether a hook is still to be called for an object, by an annotation.
func IsPending[H ~string](obj client.Object, hook H) bool {
	return slices.Contains(pendingHooks(obj), string(hook))
}

// MarkPending records that hooks are still to be called for an object.
func MarkPending[H ~string](obj client.Object, hooks ...H) {
	all := pendingHooks(obj)
	for _, hook := range hooks {
		all = append(all, string(hook))
	}
	setPendingHooks(obj, all)
}

// MarkCalled records that hooks were called for an object.
func MarkCalled[H ~string](obj client.Object, hooks ...H) {
	setPendingHooks(obj, slices.DeleteFunc(pendingHooks(obj), func(name string) bool { return slices.Contains(hooks, H(name)) }))
}

// pendingHooks returns the names of all pending hooks, also of those that this release does not know.
func pendingHooks(obj client.Object) []string {
	return strings.FieldsFunc(obj.GetAnnotations()[runtimev1.PendingHooksAnnotation], func(r rune) bool { return r == ',' || r == ' ' })
}

// setPendingHooks removes the annotation if there are no hooks.
func setPendingHooks(obj client.Object, hooks []string) {
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	if len(hooks) == 0 {
		delete(annotations, runtimev1.PendingHooksAnnotation)
	} else {
		slices.Sort(hooks)
		annotations[runtimev1.PendingHooksAnnotation] = strings.Join(slices.Compact(hooks), ",")
	}
	obj.SetAnnotations(annotations)
}
