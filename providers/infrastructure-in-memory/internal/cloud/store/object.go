package store

import (
	"encoding/json"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Resource is a collection of objects, for example {Group: "apps", Resource: "deployments"}, stored in one version.
type Resource = schema.GroupResource

// Key identifies an object in a resource group. Namespace is empty for cluster-scoped objects.
type Key struct {
	Resource        Resource
	Namespace, Name string
}

// String returns the key as group/resource namespace/name, for messages.
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Resource.String() + " " + k.Name
	}
	return k.Resource.String() + " " + k.Namespace + "/" + k.Name
}

// Object is an immutable version of a stored object: a write creates a new Object.
type Object struct {
	// Key is where the object is stored.
	Key Key
	// UID is the object's UID.
	UID types.UID
	// Revision is the object's resource version.
	Revision uint64

	labels      labels.Set
	owners      []types.UID
	terminating bool
	raw         []byte
}

// Raw returns the object encoded as JSON, with apiVersion and kind. It is shared and must not be modified.
func (o *Object) Raw() []byte { return o.raw }

// Terminating reports whether the object has a deletion timestamp.
func (o *Object) Terminating() bool { return o.terminating }

// Labels returns the object's labels. They are shared and must not be modified.
func (o *Object) Labels() labels.Set { return o.labels }

// Unstructured decodes the object. The result belongs to the caller.
func (o *Object) Unstructured() *unstructured.Unstructured {
	var content map[string]any
	if err := utiljson.Unmarshal(o.raw, &content); err != nil {
		// The bytes were encoded from such a map.
		panic(fmt.Sprintf("stored object %s does not decode: %v", o.Key, err))
	}
	return &unstructured.Unstructured{Object: content}
}

// Into decodes the object into a value of its Go type.
func (o *Object) Into(into any) error {
	if err := json.Unmarshal(o.raw, into); err != nil {
		return fmt.Errorf("decode %s as %T: %w", o.Key, into, err)
	}
	return nil
}

// encode returns the stored form of an object at a revision.
func encode(key Key, u *unstructured.Unstructured, revision uint64) (*Object, error) {
	u.SetResourceVersion(strconv.FormatUint(revision, 10))
	raw, err := json.Marshal(u.Object)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", key, err)
	}
	return newObject(key, u, revision, raw), nil
}

func newObject(key Key, u *unstructured.Unstructured, revision uint64, raw []byte) *Object {
	o := &Object{
		Key:         key,
		UID:         u.GetUID(),
		Revision:    revision,
		labels:      u.GetLabels(),
		terminating: u.GetDeletionTimestamp() != nil,
		raw:         raw,
	}
	for _, owner := range u.GetOwnerReferences() {
		o.owners = append(o.owners, owner.UID)
	}
	return o
}

func (o *Object) weight() int64 { return int64(len(o.raw)) + overhead }
