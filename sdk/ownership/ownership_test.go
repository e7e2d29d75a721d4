package ownership_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/ownership"
)

func ref(apiVersion, kind, name, uid string, controller *bool) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID("uid-of-" + uid), Controller: controller, BlockOwnerDeletion: controller,
	}
}

const core, oldCore = "cluster.x-k8s.io/v1beta2", "cluster.x-k8s.io/v1alpha4"

func TestReference(t *testing.T) {
	owner := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "m", UID: "uid-of-m"}}
	kind := clusterv1.GroupVersion.WithKind("Machine")
	for name, c := range map[string]struct {
		reason     string
		controller bool
		want       metav1.OwnerReference
	}{
		"Controller": {
			reason:     "foreground deletion of the controller waits for the owned object",
			controller: true,
			want:       ref(core, "Machine", "m", "m", new(true)),
		},
		"Owner": {
			reason: "an owner that is not the controller has only its identity",
			want:   ref(core, "Machine", "m", "m", nil),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, ownership.Reference(owner, kind, c.controller)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", c.reason, diff)
			}
		})
	}
}

func TestEnsure(t *testing.T) {
	other := ref(core, "Cluster", "c", "c", nil)
	mine := ref(core, "Machine", "m", "m", new(true))
	for name, c := range map[string]struct {
		reason      string
		refs        []metav1.OwnerReference
		want        []metav1.OwnerReference
		wantChanged bool
	}{
		"None": {
			reason:      "the first reference is added",
			want:        []metav1.OwnerReference{mine},
			wantChanged: true,
		},
		"Missing": {
			reason:      "a missing reference is added after the others",
			refs:        []metav1.OwnerReference{other},
			want:        []metav1.OwnerReference{other, mine},
			wantChanged: true,
		},
		"There": {
			reason: "an existing reference needs no write",
			refs:   []metav1.OwnerReference{other, mine},
			want:   []metav1.OwnerReference{other, mine},
		},
		"OlderVersion": {
			reason:      "a reference with an older API version is updated in place",
			refs:        []metav1.OwnerReference{ref(oldCore, "Machine", "m", "m", new(true)), other},
			want:        []metav1.OwnerReference{mine, other},
			wantChanged: true,
		},
		"OtherUID": {
			reason:      "a recreated owner replaces the deleted one of the same name",
			refs:        []metav1.OwnerReference{ref(core, "Machine", "m", "gone", new(true))},
			want:        []metav1.OwnerReference{mine},
			wantChanged: true,
		},
		"NotYetController": {
			reason:      "an owner becomes the controller",
			refs:        []metav1.OwnerReference{ref(core, "Machine", "m", "m", nil)},
			want:        []metav1.OwnerReference{mine},
			wantChanged: true,
		},
		"OtherGroup": {
			reason:      "the same kind and name in another group is another owner",
			refs:        []metav1.OwnerReference{ref("example.com/v1beta1", "Machine", "m", "m", nil)},
			want:        []metav1.OwnerReference{ref("example.com/v1beta1", "Machine", "m", "m", nil), mine},
			wantChanged: true,
		},
		"OtherName": {
			reason:      "the same kind with another name is another owner",
			refs:        []metav1.OwnerReference{ref(core, "Machine", "n", "n", nil)},
			want:        []metav1.OwnerReference{ref(core, "Machine", "n", "n", nil), mine},
			wantChanged: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := append([]metav1.OwnerReference(nil), c.refs...)
			got, changed := ownership.Ensure(c.refs, mine)
			if diff := cmp.Diff(c.want, got); diff != "" || changed != c.wantChanged {
				t.Errorf("%s: changed = %t, want %t; -want +got:\n%s", c.reason, changed, c.wantChanged, diff)
			}
			if diff := cmp.Diff(before, c.refs); diff != "" {
				t.Errorf("the references given are shared with the cache and must not change: -want +got:\n%s", diff)
			}
		})
	}
}

func TestEnsureFalseIsAbsent(t *testing.T) {
	_, changed := ownership.Ensure([]metav1.OwnerReference{ref(core, "Cluster", "c", "c", new(false))}, ref(core, "Cluster", "c", "c", nil))
	if changed {
		t.Error("false and absent are equal: the reference must not be written repeatedly")
	}
}

func TestEnsureController(t *testing.T) {
	cluster := ref(core, "Cluster", "c", "c", nil)
	mine := ref(core, "Machine", "m", "m", new(true))
	rival := ref(core, "Machine", "n", "n", new(true))
	for name, c := range map[string]struct {
		reason      string
		refs        []metav1.OwnerReference
		want        []metav1.OwnerReference
		wantChanged bool
		wantErr     string
	}{
		"Free": {
			reason:      "an orphaned object is adopted, and keeps its other owners",
			refs:        []metav1.OwnerReference{cluster},
			want:        []metav1.OwnerReference{cluster, mine},
			wantChanged: true,
		},
		"Ours": {
			reason: "an object with this controller needs no write",
			refs:   []metav1.OwnerReference{mine},
			want:   []metav1.OwnerReference{mine},
		},
		"OursByAnOlderVersion": {
			reason:      "the same controller by an older API version is no rival",
			refs:        []metav1.OwnerReference{ref(oldCore, "Machine", "m", "m", new(true))},
			want:        []metav1.OwnerReference{mine},
			wantChanged: true,
		},
		"Rival": {
			reason:  "an object with another controller is not changed, and the error contains both and what to do",
			refs:    []metav1.OwnerReference{rival},
			want:    []metav1.OwnerReference{rival},
			wantErr: "default/x is already controlled by Machine n, so it cannot be controlled by Machine m: use another object",
		},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x", OwnerReferences: c.refs}}
			changed, err := ownership.EnsureController(obj, mine)
			if diff := cmp.Diff(c.wantErr, message(err)); diff != "" {
				t.Errorf("%s: error -want +got:\n%s", c.reason, diff)
			}
			if diff := cmp.Diff(c.want, obj.OwnerReferences); diff != "" || changed != c.wantChanged {
				t.Errorf("%s: changed = %t, want %t; -want +got:\n%s", c.reason, changed, c.wantChanged, diff)
			}
		})
	}
}

func TestHas(t *testing.T) {
	owner := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m", UID: "uid-of-m"}}
	for name, c := range map[string]struct {
		reason string
		refs   []metav1.OwnerReference
		want   bool
	}{
		"None":     {"an object without owners has not this one", nil, false},
		"There":    {"an owner is identified by its UID, controller or not", []metav1.OwnerReference{ref(core, "Machine", "m", "m", nil)}, true},
		"SameName": {"a deleted owner of the same name is another one", []metav1.OwnerReference{ref(core, "Machine", "m", "gone", nil)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{OwnerReferences: c.refs}}
			if got := ownership.Has(obj, owner); got != c.want {
				t.Errorf("%s: got %t, want %t", c.reason, got, c.want)
			}
		})
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// clusters is a client over two Clusters, one of them paused. Reading the one called "broken" fails.
func clusters(t *testing.T) client.Reader {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clusterv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	running := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "running"}}
	paused := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "paused"}, Spec: clusterv1.ClusterSpec{Paused: ptr.To(true)}}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(running, paused).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if key.Name == "broken" {
				return errors.New("the API server is away")
			}
			return c.Get(ctx, key, obj, opts...)
		},
	}).Build()
}

func TestClusterOf(t *testing.T) {
	owned := func(refs ...metav1.OwnerReference) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "default", Name: "m", OwnerReferences: refs}
	}
	labeled := func(namespace, cluster string, refs ...metav1.OwnerReference) metav1.ObjectMeta {
		m := owned(refs...)
		m.Namespace, m.Labels = namespace, map[string]string{"cluster.x-k8s.io/cluster-name": cluster}
		return m
	}
	for name, c := range map[string]struct {
		reason     string
		obj        metav1.ObjectMeta
		want       string
		wantPaused bool
		wantErr    string
	}{
		"Label":           {reason: "the label names the Cluster", obj: labeled("default", "running"), want: "running"},
		"Paused":          {reason: "a paused Cluster pauses what belongs to it", obj: labeled("default", "paused"), want: "paused", wantPaused: true},
		"Owner":           {reason: "without a label the owner does", obj: owned(ref(core, "Cluster", "paused", "c", nil)), want: "paused", wantPaused: true},
		"OwnerOldVersion": {reason: "the API version of the owner reference does not matter", obj: owned(ref(oldCore, "Cluster", "running", "c", nil)), want: "running"},
		"LabelFirst":      {reason: "the label goes before the owner", obj: labeled("default", "running", ref(core, "Cluster", "paused", "c", nil)), want: "running"},
		"NeitherNor":      {reason: "an object with neither belongs to none", obj: owned(ref(core, "MachineSet", "running", "s", nil))},
		"OtherGroup":      {reason: "a Cluster of another API group is ignored", obj: owned(ref("example.com/v1", "Cluster", "running", "c", nil))},
		"Absent":          {reason: "a Cluster that does not exist (yet) is no error", obj: labeled("default", "absent")},
		"OtherNamespace":  {reason: "the Cluster is in the namespace of the object", obj: labeled("elsewhere", "running")},
		"Failure": {
			reason: "an error is not the same as no Cluster", obj: labeled("default", "broken"),
			wantErr: "reading Cluster default/broken: the API server is away",
		},
	} {
		t.Run(name, func(t *testing.T) {
			reader, obj := clusters(t), &clusterv1.Machine{ObjectMeta: c.obj}
			cluster, err := ownership.ClusterOf(t.Context(), reader, obj)
			var got string
			if cluster != nil {
				got = cluster.Name
			}
			if diff := cmp.Diff([]string{c.want, c.wantErr}, []string{got, message(err)}); diff != "" {
				t.Errorf("%s: name and error -want +got:\n%s", c.reason, diff)
			}
			paused, err := ownership.PausedByCluster[*clusterv1.Machine](reader)(t.Context(), obj)
			if paused != c.wantPaused || !strings.HasPrefix(message(err), c.wantErr) {
				t.Errorf("%s: paused = %t, %v, want %t, %q", c.reason, paused, err, c.wantPaused, c.wantErr)
			}
		})
	}
}

func TestKeepVersions(t *testing.T) {
	ref := func(apiVersion, name string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: apiVersion, Kind: "Cluster", Name: name}
	}
	refs := []metav1.OwnerReference{ref("cluster.x-k8s.io/v1beta1", "a"), ref("cluster.x-k8s.io/v1beta1", "b"), ref("cluster.x-k8s.io/v1beta1", "c")}
	present := []metav1.OwnerReference{ref("cluster.x-k8s.io/v1alpha4", "b"), ref("cluster.x-k8s.io/v1beta2", "a")}
	want := []metav1.OwnerReference{ref("cluster.x-k8s.io/v1beta2", "a"), refs[1], refs[2]}
	got, changed := ownership.KeepVersions(refs, present)
	if diff := cmp.Diff(want, got); diff != "" || !changed || refs[0].APIVersion != "cluster.x-k8s.io/v1beta1" {
		t.Errorf("changed %t, refs %v (-want +got):\n%s", changed, refs, diff)
	}
	if _, changed := ownership.KeepVersions(want, present); changed {
		t.Error("what is kept already counts as changed")
	}
}
