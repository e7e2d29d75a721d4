package controller

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/providers/operator/internal/providerobject"
)

func allPermissions(o providerobject.Object) bool {
	return o.GetAnnotations()[operatorv1.AllowAllPermissionsAnnotation] == "true"
}

// sourceOf identifies the location of releases.
func sourceOf(o providerobject.Object) string { return hashed(o.GetSpec().FetchConfig) }

// hashed returns the hash of a value of an API.
func hashed(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		return "" // Cannot happen: it was decoded from JSON.
	}
	return fmt.Sprintf("%x", sha256.Sum256(raw))
}

// hashOf returns the hash of what determines the components. The location of releases does not: it is used when something else
// changes.
func hashOf(o providerobject.Object) string {
	relevant := o.GetSpec().DeepCopy()
	relevant.FetchConfig = nil
	raw, err := json.Marshal(relevant)
	if err != nil {
		return "" // Cannot happen: it was decoded from JSON.
	}
	if allPermissions(o) {
		raw = append(raw, operatorv1.AllowAllPermissionsAnnotation...)
	}
	return fmt.Sprintf("%x", sha256.Sum256(raw))
}
