package core

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// ErrUnknownKind is returned for objects that this package does not convert.
var ErrUnknownKind = errors.New("kind is not supported by the conversion")

// Object is an object of the API.
type Object interface {
	runtime.Object
	metav1.Object
}

// Converter converts objects.
type Converter struct {
	// Version returns the API version of a kind that implements a contract we support. References of v1beta1 have one, those of
	// v1beta2 do not. Without an answer, because the provider is not installed, it is v1beta1: an error would make every list of
	// such objects fail.
	Version func(kind schema.GroupKind) (version string, ok bool)
}

// Up converts an object of v1beta1 to v1beta2. The result does not share memory with it.
func (c Converter) Up(old Object) (Object, error) {
	return translate(old, c.up, c.down)
}

// Down converts an object of v1beta2 to v1beta1. The result does not share memory with it.
func (c Converter) Down(hub Object) (Object, error) {
	return translate(hub, c.down, c.up)
}

// up maps the fields that both versions have.
func (c Converter) up(old Object) (Object, error) {
	switch o := old.(type) {
	case *clusterv1beta1.Cluster:
		return clusterUp(o), nil
	case *clusterv1beta1.ClusterClass:
		return clusterClassUp(o), nil
	case *clusterv1beta1.Machine:
		return machineUp(o), nil
	case *clusterv1beta1.MachineSet:
		return machineSetUp(o), nil
	case *clusterv1beta1.MachineDeployment:
		return machineDeploymentUp(o), nil
	case *clusterv1beta1.MachinePool:
		return machinePoolUp(o), nil
	case *clusterv1beta1.MachineHealthCheck:
		return machineHealthCheckUp(o), nil
	}
	return nil, fmt.Errorf("convert %T: %w", old, ErrUnknownKind)
}

// down maps the fields that both versions have.
func (c Converter) down(hub Object) (Object, error) {
	switch h := hub.(type) {
	case *clusterv1.Cluster:
		return c.clusterDown(h), nil
	case *clusterv1.ClusterClass:
		return clusterClassDown(h), nil
	case *clusterv1.Machine:
		return c.machineDown(h), nil
	case *clusterv1.MachineSet:
		return c.machineSetDown(h), nil
	case *clusterv1.MachineDeployment:
		return c.machineDeploymentDown(h), nil
	case *clusterv1.MachinePool:
		return c.machinePoolDown(h), nil
	case *clusterv1.MachineHealthCheck:
		return machineHealthCheckDown(h), nil
	}
	return nil, fmt.Errorf("convert %T: %w", hub, ErrUnknownKind)
}

// translate converts an object, restores what it could not represent when it was converted before, and keeps what the result cannot
// represent.
func translate(from Object, forward, backward func(Object) (Object, error)) (Object, error) {
	from, _ = from.DeepCopyObject().(Object)
	kept, found := from.GetAnnotations()[clusterv1.ConversionDataAnnotation]
	forget(from)
	to, err := forward(from)
	if err != nil {
		return nil, err
	}
	if found {
		if to, err = restore(to, kept, forward, backward); err != nil {
			return nil, err
		}
	}
	back, err := backward(to)
	if err != nil {
		return nil, err
	}
	lost, err := isLossy(from, back)
	if err != nil || !lost {
		return to, err
	}
	return to, keep(to, from)
}

// restore applies to the kept object what has changed since, and returns it. Without a valid kept object, it returns the object as
// it is: users can write anything into an annotation, and nothing may become unreadable by that.
func restore(to Object, kept string, forward, backward func(Object) (Object, error)) (Object, error) {
	before, ok := reflect.New(reflect.TypeOf(to).Elem()).Interface().(Object)
	if !ok || json.Unmarshal([]byte(kept), before) != nil || before.GetObjectKind().GroupVersionKind() != to.GetObjectKind().GroupVersionKind() {
		return to, nil
	}
	copyMetadata(before, to)
	other, err := backward(before)
	if err != nil {
		return nil, err
	}
	base, err := forward(other)
	if err != nil {
		return nil, err
	}
	merged, err := mergeObjects(before, base, to)
	if err != nil {
		return nil, err
	}
	result, _ := reflect.New(reflect.TypeOf(to).Elem()).Interface().(Object)
	if err := json.Unmarshal(merged, result); err != nil {
		return to, nil //nolint:nilerr // the kept object has a value that does not fit the changes
	}
	copyMetadata(result, to)
	return result, nil
}

// keep stores the object from in the annotation of its translation.
func keep(to, from Object) error {
	tree, err := treeOf(from)
	if err != nil {
		return err
	}
	tree["apiVersion"], tree["kind"] = from.GetObjectKind().GroupVersionKind().GroupVersion().String(), from.GetObjectKind().GroupVersionKind().Kind
	content, err := json.Marshal(tree)
	if err != nil {
		return fmt.Errorf("encode for the annotation: %w", err)
	}
	annotations := maps.Clone(to.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[clusterv1.ConversionDataAnnotation] = string(content)
	to.SetAnnotations(annotations)
	return nil
}

// forget removes the annotation.
func forget(o Object) {
	annotations := maps.Clone(o.GetAnnotations())
	delete(annotations, clusterv1.ConversionDataAnnotation)
	if len(annotations) == 0 {
		annotations = nil
	}
	o.SetAnnotations(annotations)
}

// copyMetadata sets type and metadata of an object to those of another.
func copyMetadata(to, from Object) {
	to.GetObjectKind().SetGroupVersionKind(from.GetObjectKind().GroupVersionKind())
	target := reflect.ValueOf(to).Elem().FieldByName("ObjectMeta")
	target.Set(reflect.ValueOf(from).Elem().FieldByName("ObjectMeta"))
}
