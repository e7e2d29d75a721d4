package ssa

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"sigs.k8s.io/cluster-api/sdk/testenv"
)

var server testenv.Server

func TestMain(m *testing.M) { server.Main(m) }

const (
	ours  = "ours"
	other = "other"
)

// sorted iterates over a map in the order of its keys, so that the same seed results in the same choices.
func sorted[V any](m map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, name := range slices.Sorted(maps.Keys(m)) {
			if !yield(name, m[name]) {
				return
			}
		}
	}
}

// tally counts how comparisons ended.
type tally struct {
	changes, same, shared, needless, rejected, errors atomic.Int64
}

// The API server is the judge: whatever objects went through, Plan must never overlook a change that a dry run of the
// same apply makes, and must see that there is none right after an apply.
func TestPlanAgreesWithTheAPIServer(t *testing.T) {
	e := server.Start(t)
	total := &tally{}
	t.Run("schemas", func(t *testing.T) {
		for seed := range *seeds {
			t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
				t.Parallel()
				g := newGenerator(seed)
				crd := g.crd(fmt.Sprintf("random%d", seed))
				e.Install(t, crd)
				schema, err := newKindSchema(crd, "v1")
				if err != nil {
					t.Fatal(err)
				}
				h := &history{T: t, generator: g, client: e.Client, crd: crd, schema: schema, tally: total, namespace: e.Namespace(t)}
				h.applier = NewApplier(e.Client, NewSchemas(e.Client, e.Client), ours)
				h.makeOwners("o1", "o2")
				for object := range objects {
					h.run(fmt.Sprintf("object-%d", object))
				}
			})
		}
	})
	t.Logf("%d comparisons found a change and %d found none, %d found none but shared ownership; %d found a change that the server did not; "+
		"%d configurations were rejected by the server, and %d by Plan",
		total.changes.Load(), total.same.Load(), total.shared.Load(), total.needless.Load(), total.rejected.Load(), total.errors.Load())
	if total.same.Load() < objects || total.shared.Load() == 0 || total.changes.Load() < objects {
		t.Error("the histories are too one-sided to show anything")
	}
}

// Each seed is one kind; the more seeds, the rarer what is found. A search for rare cases takes
// go test -run TestPlanAgrees -args -seeds 200.
var seeds = flag.Uint64("seeds", 8, "kinds that objects are generated for")

const (
	objects = 8
	steps   = 7
)

// history is what happens to the objects of one kind.
type history struct {
	*testing.T
	generator
	client    client.Client
	applier   *Applier
	crd       *apiextensionsv1.CustomResourceDefinition
	schema    *kindSchema
	tally     *tally
	namespace string
	last      *unstructured.Unstructured // what was applied last as ours
}

func (h *history) makeOwners(names ...string) {
	for _, name := range names {
		owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: name}}
		if err := h.client.Create(h.Context(), owner); err != nil {
			h.Fatal(err)
		}
		h.owners = append(h.owners, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: owner.UID})
	}
}

// run lets several managers work on one object and compares after each step.
func (h *history) run(name string) {
	h.last = nil
	for step := 0; step < steps && !h.Failed(); step++ {
		h.step(name)
		live := h.live(name)
		if live == nil {
			continue
		}
		wanted := h.desired(h.crd, h.namespace, name)
		h.compare(live, wanted, false)
		if h.last != nil {
			h.compare(live, h.last, false)
			h.compare(live, h.varied(h.crd, h.last), false)
		}
		// The object's own content, as a controller that reads and applies would use it.
		copied := live.DeepCopy()
		h.compare(live, copied, false)
	}
}

// step is one write to the object by someone.
func (h *history) step(name string) {
	desired := h.desired(h.crd, h.namespace, name)
	live := h.live(name)
	switch choice := h.IntN(10); {
	case choice < 4:
		if h.last != nil && h.chance(60) {
			desired = h.varied(h.crd, h.last)
		}
		if result := h.applyOurs(live, desired); result != nil {
			h.last = desired
			h.compare(result, desired, true)
		}
	case choice < 6:
		h.apply(desired, other)
	case live == nil:
		h.tolerate(h.client.Create(h.Context(), desired, client.FieldOwner("creator")))
	case choice < 9:
		patch := map[string]any{"spec": desired.Object["spec"], "metadata": map[string]any{"labels": h.labels()}}
		h.patch(live, patch, h.client)
	default:
		h.patch(live, map[string]any{"status": map[string]any{"ready": h.chance(50), "count": h.IntN(5)}}, h.client.Status())
	}
}

type patcher interface {
	Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error
}

func (h *history) patch(live *unstructured.Unstructured, fields map[string]any, with any) {
	encoded, err := json.Marshal(fields)
	if err != nil {
		h.Fatal(err)
	}
	patch := client.RawPatch(types.MergePatchType, encoded)
	switch with := with.(type) {
	case client.Client:
		err = with.Patch(h.Context(), live.DeepCopy(), patch, client.FieldOwner("patcher"))
	case patcher:
		err = with.Patch(h.Context(), live.DeepCopy(), patch, client.FieldOwner("patcher"))
	}
	h.tolerate(err)
}

func (h *history) live(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(h.schema.kind)
	err := h.client.Get(h.Context(), client.ObjectKey{Namespace: h.namespace, Name: name}, u)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		h.Fatal(err)
	}
	return u
}

// apply applies what Applier would send, and returns nil if it is rejected: some random objects are invalid.
func (h *history) apply(desired *unstructured.Unstructured, manager string, opts ...client.ApplyOption) *unstructured.Unstructured {
	config, err := configuration(h.schema, desired)
	if err != nil {
		h.Fatal(err)
	}
	opts = append(opts, client.FieldOwner(manager), client.ForceOwnership)
	if !h.tolerate(h.client.Apply(h.Context(), client.ApplyConfigurationFromUnstructured(config), opts...)) {
		return nil
	}
	return config
}

// applyOurs applies with an Applier, and compares the result with its preview. A rejection must have a reason in what is applied.
func (h *history) applyOurs(live, desired *unstructured.Unstructured) *unstructured.Unstructured {
	preview, previewErr := h.applier.Preview(h.Context(), live, desired)
	result, _, err := h.applier.Apply(h.Context(), live, desired)
	if !h.tolerate(err) {
		if strings.Contains(err.Error(), `Invalid value: "null"`) && !holdsNull(desired.Object["spec"]) {
			h.Errorf("an apply makes something null: %v\nlive: %s\ndesired: %s", err, text(live), text(desired))
		}
		return nil
	}
	if previewErr != nil {
		h.Errorf("Preview rejects what the API server accepts: %v\ndesired: %s", previewErr, text(desired))
		return result
	}
	if diff := cmp.Diff(sent(h.T, result.Object["spec"]), sent(h.T, preview.Object["spec"])); diff != "" {
		h.Errorf("the preview differs (-API server +preview):\n%s\nlive: %s\ndesired: %s", diff, text(live), text(desired))
	}
	return result
}

func (h *history) tolerate(err error) bool {
	switch {
	case err == nil:
		return true
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsInternalError(err), strings.Contains(err.Error(), "cannot be applied"),
		strings.Contains(err.Error(), "does not fit its schema"):
		h.tally.rejected.Add(1)
		return false
	default:
		h.Fatal(err)
		return false
	}
}

// compare compares Plan with the API server. applied means that desired has just been applied.
func (h *history) compare(live, desired *unstructured.Unstructured, applied bool) {
	diff, err := plan(h.schema, live, desired, ours)
	if c, err := newComparison(h.schema, live, desired, ours, nil); err == nil && c.empties() != nil {
		if !diff.Changed() {
			h.Errorf("something becomes empty, but nothing is to change\nlive: %s\ndesired: %s", text(live), text(desired))
		}
		return // A dry run cannot show the result of two requests: applyOurs compares the real one.
	}
	result := h.apply(desired, ours, client.DryRunAll)
	if err != nil {
		h.tally.errors.Add(1)
		if result != nil {
			h.Errorf("Plan rejects what the API server accepts: %v\nlive: %s\ndesired: %s", err, text(live), text(desired))
		}
		return
	}
	if result == nil {
		return
	}
	changed := cmp.Diff(visible(live), visible(result))
	if changed != "" && !diff.Changed() && h.besidesOthers(live, result) {
		h.tally.shared.Add(1)
		return
	}
	switch {
	case changed != "" && !diff.Changed():
		h.Errorf("Plan overlooks a change (-live +after):\n%s\nlive: %s\ndesired: %s", changed, text(live), text(desired))
	case changed == "" && diff.Changed() && applied:
		h.Errorf("Plan sees a change right after an apply: %+v\nlive: %s\ndesired: %s", diff, text(live), text(desired))
	case changed == "" && diff.Changed():
		h.tally.needless.Add(1)
		h.Logf("needless: %+v\nlive: %s\ndesired: %s", diff, text(live), text(desired))
	case diff.Changed():
		h.tally.changes.Add(1)
		h.compareKinds(live, result, diff)
	default:
		h.tally.same.Add(1)
	}
}

// besidesOthers reports whether all that changes is that ours owns more fields, which others own already.
func (h *history) besidesOthers(live, result *unstructured.Unstructured) bool {
	before, after, others := fieldpath.NewSet(), fieldpath.NewSet(), fieldpath.NewSet()
	for _, u := range []*unstructured.Unstructured{live, result} {
		for _, e := range entries(u) {
			set, err := e.set()
			if err != nil {
				h.Fatal(err)
			}
			switch {
			case !e.isApply(ours) && u == live:
				others = others.Union(set)
			case e.isApply(ours) && u == live:
				before = set
			case e.isApply(ours):
				after = set
			}
		}
	}
	is, becomes := visible(live), visible(result)
	for _, v := range []map[string]any{is, becomes} {
		maps.DeleteFunc(v["owners"].(map[string]any), func(key string, _ any) bool { return strings.HasPrefix(key, `"`+ours+`" Apply "" `) })
	}
	return !before.Empty() && before.Difference(after).Empty() && after.Difference(before).Difference(others).Empty() && cmp.Equal(is, becomes)
}

// compareKinds checks which parts of the object change according to Diff.
func (h *history) compareKinds(live, result *unstructured.Unstructured, diff Diff) {
	spec := !reflect.DeepEqual(live.Object["spec"], result.Object["spec"])
	if spec != diff.SpecChanged() {
		h.Errorf("the spec changes: %t; Plan returns %+v\n%s\nlive: %s", spec, diff, cmp.Diff(visible(live), visible(result)), text(live))
	}
	for _, name := range []string{"labels", "annotations", "ownerReferences", "finalizers"} {
		before, _, _ := unstructured.NestedFieldNoCopy(live.Object, "metadata", name)
		after, _, _ := unstructured.NestedFieldNoCopy(result.Object, "metadata", name)
		if !reflect.DeepEqual(before, after) && len(diff.Metadata) == 0 {
			h.Errorf("%s change from %v to %v; Plan returns %+v", name, before, after, diff)
		}
	}
}

// visible is what counts as changed: everything but times and revisions.
func visible(u *unstructured.Unstructured) map[string]any {
	out := u.DeepCopy()
	owners := map[string]any{}
	for _, e := range entries(out) {
		owners[e.key()+" "+string(e.apiVersion)] = e.fields
	}
	for _, name := range []string{"managedFields", "resourceVersion", "generation"} {
		unstructured.RemoveNestedField(out.Object, "metadata", name)
	}
	return map[string]any{"object": out.Object, "owners": owners}
}

// sent is a value as it arrives elsewhere: whole numbers are integers.
func sent(t *testing.T, value any) any {
	encoded, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := utiljson.Unmarshal(encoded, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func text(u *unstructured.Unstructured) string {
	if u == nil {
		return "none"
	}
	encoded, err := json.Marshal(u.Object)
	if err != nil {
		panic(err)
	}
	return string(encoded)
}
