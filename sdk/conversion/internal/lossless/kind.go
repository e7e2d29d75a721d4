package lossless

import (
	"context"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Object is the JSON of an object. Integers are int64.
type Object = map[string]any

// Kind converts the objects of one kind. Its functions get the JSON of an object, which they may change except for the metadata, of
// which they see name and namespace. What they leave is decoded as the other version, without the fields that this version does not
// have.
//
// The functions are also called with parts of objects, for which they must give the corresponding parts of the result.
type Kind[Hub, Spoke client.Object] struct {
	// Hub and Spoke are the kind in both versions.
	Hub, Spoke schema.GroupVersionKind
	// NewHub and NewSpoke return empty objects.
	NewHub   func() Hub
	NewSpoke func() Spoke

	// Up changes an object of the spoke to one of the hub.
	Up func(object Object)
	// Down changes an object of the hub to one of the spoke.
	Down func(ctx context.Context, object Object)
	// Fill sets fields of the spoke that Down sets although clients of the spoke need not, so that they do not count as lost.
	// Optional.
	Fill func(object Object)

	// Present are the names of fields that differ if empty from being absent. In all others, empty objects and lists are removed.
	Present []string
	// Whole are the names of objects that are restored as a whole, or not at all.
	Whole []string
	// Grouping are the names of objects of the hub that the spoke may not have, because it has their fields elsewhere. What it cannot
	// express of them is restored even if they were removed.
	Grouping []string
}

// ToHub converts an object of the spoke to one of the hub.
func (k *Kind[Hub, Spoke]) ToHub(ctx context.Context, src Spoke, dst Hub) error {
	if err := k.toHub(ctx, src, dst); err != nil {
		return fmt.Errorf("converting %s %s: %w", k.Spoke, client.ObjectKeyFromObject(src), err)
	}
	return nil
}

func (k *Kind[Hub, Spoke]) toHub(ctx context.Context, src Spoke, dst Hub) error {
	spoke, err := treeOf(src, k.NewSpoke())
	if err != nil {
		return err
	}
	hub, err := k.up(spoke)
	if err != nil {
		return err
	}
	if kept := dataOf(src); kept.is(k.Hub) {
		k.restoreHub(ctx, kept, hub)
	}
	lost, err := k.lostBySpoke(ctx, spoke, hub)
	if err != nil {
		return err
	}
	content := ""
	if len(lost) > 0 {
		content, _ = encode(k.Spoke, lost)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(hub, dst); err != nil {
		return err
	}
	return setMetadata(dst, src, content)
}

// ToSpoke converts an object of the hub to one of the spoke.
func (k *Kind[Hub, Spoke]) ToSpoke(ctx context.Context, src Hub, dst Spoke) error {
	if err := k.toSpoke(ctx, src, dst); err != nil {
		return fmt.Errorf("converting %s %s: %w", k.Hub, client.ObjectKeyFromObject(src), err)
	}
	return nil
}

func (k *Kind[Hub, Spoke]) toSpoke(ctx context.Context, src Hub, dst Spoke) error {
	hub, err := treeOf(src, k.NewHub())
	if err != nil {
		return err
	}
	spoke, err := k.down(ctx, hub)
	if err != nil {
		return err
	}
	if kept := dataOf(src); kept.is(k.Spoke) {
		k.restoreSpoke(ctx, kept, spoke)
	}
	content, fits := encode(k.Hub, fieldsOf(hub))
	if !fits {
		if err := k.dropLists(ctx, hub); err != nil {
			return err
		}
		content, _ = encode(k.Hub, fieldsOf(hub))
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(spoke, dst); err != nil {
		return err
	}
	return setMetadata(dst, src, content)
}

// up returns the hub's form of an object of the spoke.
func (k *Kind[Hub, Spoke]) up(spoke Object) (Object, error) {
	hub := runtime.DeepCopyJSON(spoke)
	k.Up(hub)
	return k.normal(hub, k.Hub, k.NewHub())
}

// down returns the spoke's form of an object of the hub.
func (k *Kind[Hub, Spoke]) down(ctx context.Context, hub Object) (Object, error) {
	spoke := runtime.DeepCopyJSON(hub)
	k.Down(ctx, spoke)
	return k.normal(spoke, k.Spoke, k.NewSpoke())
}

// normal returns an object as its type writes it.
func (k *Kind[Hub, Spoke]) normal(object Object, kind schema.GroupVersionKind, typed any) (Object, error) {
	k.prune(object)
	object["apiVersion"], object["kind"] = kind.GroupVersion().String(), kind.Kind
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, typed); err != nil {
		return nil, err
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
}

// restoreHub restores what the spoke cannot express, unless its clients changed it. Data that does not fit is ignored: clients
// can write anything into an annotation, and a stored object that cannot be converted could not be mended.
func (k *Kind[Hub, Spoke]) restoreHub(ctx context.Context, kept data, hub Object) {
	saved, err := k.normal(kept.fields.with(hub), k.Hub, k.NewHub())
	if err != nil {
		return
	}
	spoke, err := k.down(ctx, saved)
	if err != nil {
		return
	}
	shown, err := k.up(spoke)
	if err != nil {
		return
	}
	k.restoreInto(hub, k.lost(saved, shown, "spec", "status"), shown, k.NewHub())
}

// restoreSpoke restores what the hub cannot express, unless its clients changed it.
func (k *Kind[Hub, Spoke]) restoreSpoke(ctx context.Context, kept data, spoke Object) {
	hub, err := k.up(kept.fields.with(spoke))
	if err != nil {
		return
	}
	shown, err := k.down(ctx, hub)
	if err != nil {
		return
	}
	k.restoreInto(spoke, kept.fields, shown, k.NewSpoke())
}

// restoreInto restores lost fields, unless the result does not fit the type.
func (k *Kind[Hub, Spoke]) restoreInto(object Object, lost fields, shown Object, typed any) {
	result := runtime.DeepCopyJSON(object)
	k.restore(lost, shown, result)
	if runtime.DefaultUnstructuredConverter.FromUnstructured(result, typed) != nil {
		return
	}
	clear(object)
	maps.Copy(object, result)
}

// lostBySpoke returns the fields of a spoke's spec that the hub cannot express. Controllers write the status in the hub, so that
// fields of the status are not kept: they would be stale.
func (k *Kind[Hub, Spoke]) lostBySpoke(ctx context.Context, spoke, hub Object) (fields, error) {
	back, err := k.down(ctx, hub)
	if err != nil {
		return nil, err
	}
	filled := runtime.DeepCopyJSON(spoke)
	if k.Fill != nil {
		k.Fill(filled)
	}
	return k.lost(filled, back, "spec"), nil
}

// dropLists drops the lists of an object of the hub that the spoke can express. They are what makes objects too large for an
// annotation, and they do not matter for what else is lost.
func (k *Kind[Hub, Spoke]) dropLists(ctx context.Context, hub Object) error {
	spoke, err := k.down(ctx, hub)
	if err != nil {
		return err
	}
	back, err := k.up(spoke)
	if err != nil {
		return err
	}
	dropLists(hub, Object(k.lost(hub, back, "spec", "status")))
	return nil
}
