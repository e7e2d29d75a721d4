package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// errModified is the message of conflicts, as in Kubernetes.
var errModified = errors.New("the object has been modified; please apply your changes to the latest version and try again")

// carryIdentity prepares u as the next version of an object: it rejects another identity or an outdated version, and copies
// immutable fields.
func carryIdentity(current *Object, u *unstructured.Unstructured) error {
	if err := checkPreconditions(current, string(u.GetUID()), u.GetResourceVersion()); err != nil {
		return err
	}
	old := current.Unstructured()
	u.SetName(current.Key.Name)
	u.SetNamespace(current.Key.Namespace)
	u.SetUID(current.UID)
	u.SetCreationTimestamp(old.GetCreationTimestamp())
	u.SetDeletionTimestamp(old.GetDeletionTimestamp())
	u.SetDeletionGracePeriodSeconds(old.GetDeletionGracePeriodSeconds())

	generation := old.GetGeneration()
	if !equality.Semantic.DeepEqual(old.Object["spec"], u.Object["spec"]) {
		generation++
	}
	if generation == 0 {
		unstructured.RemoveNestedField(u.Object, "metadata", "generation")
	} else {
		u.SetGeneration(generation)
	}
	u.SetResourceVersion(old.GetResourceVersion())
	return nil
}

// checkPreconditions compares a UID and a resource version, if set, with those of an object.
func checkPreconditions(current *Object, uid, resourceVersion string) error {
	if uid != "" && uid != string(current.UID) {
		return apierrors.NewConflict(current.Key.Resource, current.Key.Name,
			fmt.Errorf("Precondition failed: UID in precondition: %s, UID in object meta: %s", uid, current.UID))
	}
	if resourceVersion != "" && resourceVersion != strconv.FormatUint(current.Revision, 10) {
		return apierrors.NewConflict(current.Key.Resource, current.Key.Name, errModified)
	}
	return nil
}

// unchanged reports whether writing u would change nothing that is relevant to clients.
func unchanged(current *Object, u *unstructured.Unstructured) bool {
	raw, err := json.Marshal(u.Object)
	if err != nil {
		return false
	}
	if bytes.Equal(raw, current.raw) {
		return true
	}
	if len(u.GetManagedFields()) == 0 {
		return false
	}
	return equality.Semantic.DeepEqual(withoutTimes(current.Unstructured()), withoutTimes(u.DeepCopy()))
}

// withoutTimes drops the times of managedFields, which server-side apply updates even if nothing else changes.
func withoutTimes(u *unstructured.Unstructured) map[string]any {
	entries, _, _ := unstructured.NestedFieldNoCopy(u.Object, "metadata", "managedFields")
	list, _ := entries.([]any)
	for _, entry := range list {
		if fields, ok := entry.(map[string]any); ok {
			delete(fields, "time")
		}
	}
	return u.Object
}
