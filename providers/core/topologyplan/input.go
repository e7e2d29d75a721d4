package topologyplan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/variables"
	"sigs.k8s.io/cluster-api/providers/core/internal/webhook"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/conversion"
	"sigs.k8s.io/cluster-api/sdk/external"
)

// fieldManager is the field manager of dry runs.
const fieldManager = "clusterctl-topology-plan"

// intake adds the objects of the input to a world.
type intake struct {
	*World
	// dryRun is nil if there is no management cluster.
	dryRun client.Writer
}

// add merges each object into the one in the world, like kubectl apply: fields that were applied before and are no longer in the object
// are removed. Clusters and ClusterClasses are defaulted and validated against the world, because the API server would validate
// them against the classes that it has now; others by a dry run.
func (i intake) add(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, stage := range stages(objects) {
		for _, u := range stage {
			if err := i.addOne(ctx, u); err != nil {
				return fmt.Errorf("%s %s: %w", u.GetKind(), client.ObjectKeyFromObject(u), err)
			}
		}
	}
	return nil
}

// stages returns the objects in the order in which they depend on each other.
func stages(objects []*unstructured.Unstructured) [3][]*unstructured.Unstructured {
	var out [3][]*unstructured.Unstructured
	for _, u := range objects {
		at := 0
		switch u.GroupVersionKind().GroupKind() {
		case clusterv1.GroupVersion.WithKind(classKind).GroupKind():
			at = 1
		case clusterv1.GroupVersion.WithKind(clusterKind).GroupKind():
			at = 2
		}
		out[at] = append(out[at], u)
	}
	return out
}

const (
	classKind   = "ClusterClass"
	clusterKind = "Cluster"
)

func (i intake) addOne(ctx context.Context, u *unstructured.Unstructured) error {
	live, err := i.get(ctx, u.GroupVersionKind(), client.ObjectKeyFromObject(u))
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	merged, patch, err := merge(ctx, live, u)
	if err != nil {
		return err
	}
	switch {
	case u.GroupVersionKind() == clusterv1.GroupVersion.WithKind(classKind):
		return i.addClass(ctx, live, merged)
	case u.GroupVersionKind() == clusterv1.GroupVersion.WithKind(clusterKind):
		return i.addCluster(ctx, live, merged)
	case i.dryRun == nil || u.GetKind() == definitionKind:
		i.Put(merged)
		return nil
	}
	if err := i.validate(ctx, live, merged, patch); err != nil {
		return err
	}
	i.Put(merged)
	return nil
}

// validate sends a dry run, whose result replaces merged.
func (i intake) validate(ctx context.Context, live, merged *unstructured.Unstructured, patch []byte) error {
	if live == nil {
		return i.dryRun.Create(ctx, merged, client.DryRunAll, client.FieldOwner(fieldManager))
	}
	if string(patch) == "{}" {
		return nil
	}
	return i.dryRun.Patch(ctx, merged, client.RawPatch(types.MergePatchType, patch), client.DryRunAll, client.FieldOwner(fieldManager))
}

// merge returns what kubectl apply of an object results in, and the merge patch. live may be nil.
func merge(ctx context.Context, live, u *unstructured.Unstructured) (*unstructured.Unstructured, []byte, error) {
	if live == nil {
		return u.DeepCopy(), nil, nil
	}
	before, beforeErr := json.Marshal(live.Object)
	wanted, wantedErr := json.Marshal(u.Object)
	if err := errors.Join(beforeErr, wantedErr); err != nil {
		return nil, nil, fmt.Errorf("encoding: %w", err)
	}
	last, err := lastApplied(ctx, live)
	if err != nil {
		return nil, nil, err
	}
	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(last, wanted, before)
	if err != nil {
		return nil, nil, fmt.Errorf("comparing with the existing object: %w", err)
	}
	after, err := jsonpatch.MergePatch(before, patch)
	if err != nil {
		return nil, nil, fmt.Errorf("merging into the existing object: %w", err)
	}
	out := &unstructured.Unstructured{}
	return out, patch, out.UnmarshalJSON(after)
}

// lastApplied returns what kubectl applied last to an object; empty if nothing. A client may have applied it in another version.
func lastApplied(ctx context.Context, live *unstructured.Unstructured) ([]byte, error) {
	last := live.GetAnnotations()[corev1.LastAppliedConfigAnnotation]
	if last == "" {
		return nil, nil
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON([]byte(last)); err != nil {
		return nil, fmt.Errorf("decoding annotation %s: %w", corev1.LastAppliedConfigAnnotation, err)
	}
	u, err := conversion.Shared().In(ctx, live.GroupVersionKind().Version, u)
	if err != nil {
		return nil, err
	}
	return json.Marshal(u.Object)
}

// inNewest returns objects with those of the core group in the newest version.
func inNewest(ctx context.Context, objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	registry, out := conversion.Shared(), slices.Clone(objects)
	for i, u := range objects {
		kind := u.GroupVersionKind()
		_, known := registry.KindOf(u)
		if !known || kind.Group != clusterv1.GroupVersion.Group || kind.Version == clusterv1.GroupVersion.Version {
			continue
		}
		typed, err := registry.NewObject(kind)
		if err == nil {
			err = decode(u, typed)
		}
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", u.GetKind(), client.ObjectKeyFromObject(u), err)
		}
		if out[i], err = registry.In(ctx, clusterv1.GroupVersion.Version, u); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// decode converts u, and returns an error for unknown fields.
func decode(u *unstructured.Unstructured, obj runtime.Object) error {
	err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(runtime.DeepCopyJSON(u.Object), obj, true)
	if err != nil {
		return fmt.Errorf("decoding: %w", err)
	}
	return nil
}

// addClass adds a ClusterClass, with the status that its controller would set.
func (i intake) addClass(ctx context.Context, live, merged *unstructured.Unstructured) error {
	class, old := &clusterv1.ClusterClass{}, &clusterv1.ClusterClass{}
	if err := decode(merged, class); err != nil {
		return err
	}
	hooks := webhook.NewClusterClass(webhook.Options{Reader: i, ClusterTopology: true, RuntimeSDK: true})
	var err error
	if live == nil {
		_, err = hooks.ValidateCreate(ctx, class)
	} else if err = into(live, old); err == nil {
		_, err = hooks.ValidateUpdate(ctx, old, class)
	}
	if err != nil {
		return err
	}
	created(class)
	class.Generation++
	class.ResourceVersion = ""
	if class.Status.Variables, err = variables.Merge(append(
		[]variables.Source{{From: clusterv1.VariableDefinitionFromInline, Variables: class.Spec.Variables}},
		discovered(old, class)...)...); err != nil {
		return fmt.Errorf("merging the variables: %w", err)
	}
	class.Status.ObservedGeneration = class.Generation
	condition.Set(class, condition.True(clusterv1.ClusterClassVariablesReconciledV1Beta1Condition))
	return i.PutTyped(class)
}

// discovered returns the variables that the extensions of external patches had defined for the class before.
func discovered(old, class *clusterv1.ClusterClass) []variables.Source {
	var sources []variables.Source
	for i := range class.Spec.Patches {
		name := class.Spec.Patches[i].Name
		source := variables.Source{From: name}
		for _, v := range old.Status.Variables {
			for _, d := range v.Definitions {
				if d.From == name && d.From != clusterv1.VariableDefinitionFromInline {
					source.Variables = append(source.Variables, clusterv1.ClusterClassVariable{
						Name: v.Name, Required: d.Required, DeprecatedV1Beta1Metadata: d.DeprecatedV1Beta1Metadata, Schema: d.Schema,
					})
				}
			}
		}
		if len(source.Variables) > 0 {
			sources = append(sources, source)
		}
	}
	return sources
}

// created sets the UID of an object that does not exist, which the names of a Cluster's objects derive from: always the same one, so
// that plans can be compared.
func created(obj client.Object) {
	if obj.GetUID() == "" {
		id := uuid.NewSHA1(uuid.NameSpaceURL, []byte(obj.GetNamespace()+"/"+obj.GetName()))
		obj.SetUID(types.UID(id.String()))
	}
}

func (i intake) addCluster(ctx context.Context, live, merged *unstructured.Unstructured) error {
	cluster, old := &clusterv1.Cluster{}, &clusterv1.Cluster{}
	if err := decode(merged, cluster); err != nil {
		return err
	}
	hooks, err := newHooks(i)
	if err != nil {
		return err
	}
	if live == nil {
		return i.update(ctx, hooks, nil, cluster)
	}
	if err := into(live, old); err != nil {
		return err
	}
	return i.update(ctx, hooks, old, cluster)
}

// newHooks returns the webhooks of Clusters.
func newHooks(reader client.Reader) (*webhook.Cluster, error) {
	return webhook.NewCluster(webhook.Options{
		Reader: reader, ClusterTopology: true, ClusterTopologyWorkerVersionPinning: true, MachineTaintPropagation: true,
		Object: objectsOf(reader), Clock: impatient{},
	})
}

// objectsOf returns the function that reads the object of a reference.
func objectsOf(
	reader client.Reader,
) func(ctx context.Context, ref *clusterv1.ContractVersionedObjectReference, namespace string) (contract.Object, error) {
	return external.Reader{Client: reader, Versions: contract.APIVersions{Reader: reader}}.Object
}

// impatient is a clock for a world, in which nothing happens by waiting.
type impatient struct{ clock.RealClock }

// After implements clock.Clock.
func (impatient) After(time.Duration) <-chan time.Time {
	passed := make(chan time.Time)
	close(passed)
	return passed
}

// update adds a Cluster that is updated, or created if old is nil.
func (i intake) update(ctx context.Context, hooks *webhook.Cluster, old, cluster *clusterv1.Cluster) error {
	if err := hooks.Default(ctx, cluster); err != nil {
		return err
	}
	var err error
	if old == nil {
		_, err = hooks.ValidateCreate(ctx, cluster)
	} else {
		_, err = hooks.ValidateUpdate(ctx, old, cluster)
	}
	if err != nil {
		return err
	}
	created(cluster)
	return i.PutTyped(cluster)
}
