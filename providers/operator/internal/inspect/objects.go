package inspect

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const admissionGroup = "admissionregistration.k8s.io"

// admission rejects webhooks and policies that change objects of Kubernetes: Pods of others, or their roles.
func (in *inspection) admission(o *unstructured.Unstructured) (string, error) {
	if o.GroupVersionKind().Group != admissionGroup || !strings.HasPrefix(o.GetKind(), "Mutating") {
		return "", nil
	}
	rules, _, _ := unstructured.NestedSlice(o.Object, "spec", "matchConstraints", "resourceRules")
	webhooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
	for _, webhook := range webhooks {
		fields, _ := webhook.(map[string]any)
		more, _, _ := unstructured.NestedSlice(fields, "rules")
		rules = append(rules, more...)
	}
	for _, rule := range rules {
		fields, _ := rule.(map[string]any)
		groups, _, _ := unstructured.NestedStringSlice(fields, "apiGroups")
		if i := slices.IndexFunc(groups, isOfKubernetes); i >= 0 {
			return fmt.Sprintf("would change objects of others while they are written (API group %q)", groups[i]), nil
		}
	}
	return "", nil
}

// volume rejects volumes that are a file system of a Node.
func (in *inspection) volume(o *unstructured.Unstructured) (string, error) {
	if o.GetKind() != "PersistentVolume" || o.GroupVersionKind().Group != "" {
		return "", nil
	}
	for _, source := range []string{"hostPath", "local"} {
		if _, found, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", source); found {
			return "is a file system of a Node", nil
		}
	}
	return "", nil
}

// account rejects to use the ServiceAccount of another provider in the same namespace.
func (in *inspection) account(o *unstructured.Unstructured) (string, error) {
	for _, name := range accounts(o) {
		if in.has("", "ServiceAccount", name) {
			continue
		}
		account := &unstructured.Unstructured{}
		account.SetAPIVersion("v1")
		account.SetKind("ServiceAccount")
		account.SetNamespace(o.GetNamespace())
		account.SetName(name)
		found, err := in.Find(account)
		if err != nil {
			return "", err
		}
		if found.Provider != "" && found.Provider != in.Label && in.Installed(found.Provider) {
			return fmt.Sprintf("uses ServiceAccount %s of provider %s", name, found.Provider), nil
		}
	}
	return "", nil
}

// accounts returns the names of the ServiceAccounts whose permissions an object uses.
func accounts(o *unstructured.Unstructured) []string {
	names := []string{}
	for _, spec := range [][]string{{"spec"}, {"spec", "template", "spec"}, {"spec", "jobTemplate", "spec", "template", "spec"}} {
		for _, field := range []string{"serviceAccountName", "serviceAccount"} {
			if name, _, _ := unstructured.NestedString(o.Object, append(slices.Clone(spec), field)...); name != "" {
				names = append(names, name)
			}
		}
	}
	if o.GetKind() == "Secret" {
		if name := o.GetAnnotations()["kubernetes.io/service-account.name"]; name != "" {
			names = append(names, name)
		}
	}
	return names
}
