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
	"k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"sigs.k8s.io/cluster-api/packages"
)

// KindCRD is the kind of custom resource definitions.
const KindCRD = "CustomResourceDefinition"

// Parse reads the objects of a file of YAML or JSON documents, in order; lists are replaced by their items, and empty
// documents skipped. The error of a malformed document has its number.
func Parse(raw []byte) ([]unstructured.Unstructured, error) { return parse(raw, false) }

// ParseTemplate is Parse for files of users that are only printed: documents without kind or apiVersion are objects, too.
func ParseTemplate(raw []byte) ([]unstructured.Unstructured, error) { return parse(raw, true) }

func parse(raw []byte, anyMap bool) ([]unstructured.Unstructured, error) {
	var list []unstructured.Unstructured
	err := documents(raw, func(asJSON []byte) error {
		objects, err := parseDocument(asJSON, anyMap)
		list = append(list, objects...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// Normalize returns a file of YAML or JSON documents, which need not be objects, as YAML documents with sorted keys, and without
// comments and empty documents.
func Normalize(raw []byte) ([]byte, error) {
	var out bytes.Buffer
	err := documents(raw, func(asJSON []byte) error {
		text, err := yaml.JSONToYAML(asJSON)
		if err != nil {
			return err
		}
		if out.Len() > 0 {
			out.WriteString("---\n")
		}
		out.Write(text)
		return nil
	})
	return out.Bytes(), err
}

// Check returns an error if Parse would reject the file for another reason than a document that is not an object.
func Check(raw []byte) error { return documents(raw, func([]byte) error { return nil }) }

// documents calls visit with each document that is not empty, as JSON.
func documents(raw []byte, visit func(asJSON []byte) error) error {
	if len(raw) > packages.MaxManifests {
		return packages.TooLarge("the file", len(raw), packages.MaxManifests)
	}
	// The reader loses a last line without an end that fills its buffer.
	if len(raw) > 0 && raw[len(raw)-1] != '\n' {
		raw = append(slices.Clip(raw), '\n')
	}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(raw)))
	for number := 1; ; number++ {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot read document %d: %w", number, err)
		}
		asJSON, err := toJSON(document)
		if err == nil && string(asJSON) != "null" {
			err = visit(asJSON)
		}
		if err != nil {
			return fmt.Errorf("document %d: %w", number, err)
		}
	}
}

func toJSON(document []byte) ([]byte, error) {
	if err := packages.CheckYAML("not valid YAML", document, packages.MaxDocument); err != nil {
		return nil, err
	}
	asJSON, err := yaml.YAMLToJSON(document)
	if err != nil {
		return nil, fmt.Errorf("invalid YAML: %w", err)
	}
	return asJSON, nil
}

func parseDocument(asJSON []byte, anyMap bool) ([]unstructured.Unstructured, error) {
	object := unstructured.Unstructured{}
	err := object.UnmarshalJSON(asJSON)
	if err == nil && object.GetKind() != "" {
		err = checkType(&object)
	}
	if err != nil && anyMap && asJSON[0] == '{' {
		return []unstructured.Unstructured{object}, json.Unmarshal(asJSON, &object.Object)
	}
	if err != nil {
		if runtime.IsMissingKind(err) {
			return nil, errNoKind
		}
		return nil, fmt.Errorf("not a Kubernetes object: %w", err)
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

// CheckTypes returns an error if one of the objects has no kind or no apiVersion.
func CheckTypes(objects []unstructured.Unstructured) error {
	for i := range objects {
		if err := checkType(&objects[i]); err != nil {
			return fmt.Errorf("object %d: %w", i+1, err)
		}
	}
	return nil
}

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
		if scope.Namespaced(&objects[i]) && objects[i].GetKind() != "" {
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
