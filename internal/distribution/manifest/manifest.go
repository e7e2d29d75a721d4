// Package manifest reads and writes YAML files of Kubernetes objects and puts objects into namespaces.
//
// It knows the form of such files, not their meaning: what a provider's objects need besides is package components'
// matter.
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

	"sigs.k8s.io/cluster-api/provider/expansion"
)

// KindCRD is the kind of custom resource definitions.
const KindCRD = "CustomResourceDefinition"

// Parse reads the objects of a file of YAML or JSON documents, in their order; lists are replaced by their items and
// empty documents left out. The error of a malformed document tells which one it is.
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

// Describe names an object the way messages do: Kind namespace/name.
func Describe(o *unstructured.Unstructured) string {
	if o.GetNamespace() == "" {
		return o.GetKind() + " " + o.GetName()
	}
	return o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
}

// Scope tells which kinds live in no namespace.
type Scope struct {
	custom map[string]string
}

// ScopeOf returns the Scope that knows the built-in kinds and those defined by the CRDs among objects.
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

// Namespaced reports whether objects of the kind live in namespaces; unknown kinds are taken to.
func (s Scope) Namespaced(o *unstructured.Unstructured) bool {
	if scope, ok := s.custom[o.GroupVersionKind().GroupKind().String()]; ok {
		return scope != "Cluster"
	}
	return !slices.Contains(clusterKinds(), o.GetKind())
}

// SetNamespace puts every namespaced object into the namespace.
func SetNamespace(objects []unstructured.Unstructured, namespace string) {
	scope := ScopeOf(objects)
	for i := range objects {
		if scope.Namespaced(&objects[i]) {
			objects[i].SetNamespace(namespace)
		}
	}
}

// clusterKinds returns the kinds without namespace of Kubernetes itself and of cert-manager.
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
