// Package manifest reads and writes YAML files of Kubernetes objects and puts objects into namespaces.
//
// It handles the format of such files; package components handles what is specific to providers.
package manifest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"sigs.k8s.io/cluster-api/sdk/expansion"
)

// KindCRD is the kind of custom resource definitions.
const KindCRD = "CustomResourceDefinition"

// Parse reads the objects of a file of YAML or JSON documents, in order; lists are replaced by their items, and empty
// documents skipped. The error of a malformed document has its number.
func Parse(raw []byte) ([]unstructured.Unstructured, error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(raw)))
	var list []unstructured.Unstructured
	for number := 1; ; number++ {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read document %d: %w", number, err)
		}
		objects, err := parseDocument(document)
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", number, err)
		}
		list = append(list, objects...)
	}
}

// maxDocument is how much one document may hold with its aliases written out, in bytes.
const maxDocument = 16 << 20

func parseDocument(document []byte) ([]unstructured.Unstructured, error) {
	if err := expansion.Check(document, maxDocument); err != nil {
		return nil, fmt.Errorf("not valid YAML: %w", err)
	}
	asJSON, err := yaml.YAMLToJSON(document)
	if err != nil {
		return nil, fmt.Errorf("invalid YAML: %w", err)
	}
	if string(asJSON) == "null" {
		return nil, nil
	}
	object := unstructured.Unstructured{}
	if err := object.UnmarshalJSON(asJSON); err != nil {
		if runtime.IsMissingKind(err) {
			return nil, errNoKind
		}
		return nil, fmt.Errorf("not a Kubernetes object: %w", err)
	}
	if err := checkType(&object); err != nil {
		return nil, err
	}
	if !object.IsList() {
		return []unstructured.Unstructured{object}, nil
	}
	items, err := object.ToList()
	if err != nil {
		return nil, fmt.Errorf("cannot read the %s: %w", object.GetKind(), err)
	}
	for i := range items.Items {
		if err := checkType(&items.Items[i]); err != nil {
			return nil, fmt.Errorf("item %d of the %s: %w", i+1, object.GetKind(), err)
		}
	}
	return items.Items, nil
}

var errNoKind = errors.New("not a Kubernetes object: it has no kind")

func checkType(o *unstructured.Unstructured) error {
	switch {
	case o.GetKind() == "":
		return errNoKind
	case o.GetAPIVersion() == "":
		return fmt.Errorf("%s %s has no apiVersion", o.GetKind(), o.GetName())
	}
	return nil
}

// Format writes objects as YAML documents with sorted keys.
func Format(objects []unstructured.Unstructured) ([]byte, error) {
	var out bytes.Buffer
	for i := range objects {
		raw, err := yaml.Marshal(objects[i].Object)
		if err != nil {
			return nil, fmt.Errorf("cannot write %s: %w", Describe(&objects[i]), err)
		}
		if i > 0 {
			out.WriteString("---\n")
		}
		out.Write(raw)
	}
	return out.Bytes(), nil
}

// Describe formats an object for messages: Kind namespace/name.
func Describe(o *unstructured.Unstructured) string {
	if o.GetNamespace() == "" {
		return o.GetKind() + " " + o.GetName()
	}
	return o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
}

// Scope holds the cluster-scoped kinds.
type Scope struct {
	custom map[string]string
}

// ScopeOf returns the Scope of the built-in kinds and those defined by CRDs among objects.
func ScopeOf(objects []unstructured.Unstructured) Scope {
	custom := map[string]string{}
	for _, o := range objects {
		if o.GetKind() != KindCRD {
			continue
		}
		group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
		scope, _, _ := unstructured.NestedString(o.Object, "spec", "scope")
		custom[kind+"."+group] = scope
	}
	return Scope{custom: custom}
}

// Namespaced reports whether the kind is namespaced; unknown kinds are assumed to be.
func (s Scope) Namespaced(o *unstructured.Unstructured) bool {
	if scope, ok := s.custom[o.GroupVersionKind().GroupKind().String()]; ok {
		return scope != "Cluster"
	}
	return !slices.Contains(clusterKinds(), o.GetKind())
}

// SetNamespace sets the namespace of every namespaced object.
func SetNamespace(objects []unstructured.Unstructured, namespace string) {
	scope := ScopeOf(objects)
	for i := range objects {
		if scope.Namespaced(&objects[i]) {
			objects[i].SetNamespace(namespace)
		}
	}
}

// clusterKinds returns the cluster-scoped kinds of Kubernetes and cert-manager.
func clusterKinds() []string {
	return []string{
		"APIService", "CSIDriver", "CSINode", "CertificateSigningRequest", "ClusterIssuer", "ClusterRole",
		"ClusterRoleBinding", "ClusterTrustBundle", KindCRD, "DeviceClass", "FlowSchema", "IngressClass",
		"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration", "Namespace", "Node",
		"PersistentVolume", "PodSecurityPolicy", "PriorityClass", "PriorityLevelConfiguration", "RuntimeClass",
		"StorageClass", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration",
		"VolumeAttachment",
	}
}
